#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_asinh(Backward& b) {
  return b.div(b.g(), b.fn("sqrt", b.shift(b.mul(b.x(), b.x()), 1.0)));
}

}  // namespace

const ir::OpDef& op_asinh() {
  static const ir::OpDef def{
      .name = "asinh",
      .summary = "The inverse hyperbolic sine.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::asinh>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_asinh>,
      .onnx = {.name = "Asinh"},
  };
  return def;
}

}  // namespace pyc::ops
