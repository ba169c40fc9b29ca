#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_atanh(Backward& b) {
  return b.div(b.g(), b.shift(b.neg(b.mul(b.x(), b.x())), 1.0));
}

}  // namespace

const ir::OpDef& op_atanh() {
  static const ir::OpDef def{
      .name = "atanh",
      .summary = "The inverse hyperbolic tangent; NaN outside of [-1, 1].",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::atanh>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_atanh>,
      .onnx = {.name = "Atanh"},
      .draw = {.lo = -0.9, .hi = 0.9},
  };
  return def;
}

}  // namespace pyc::ops
