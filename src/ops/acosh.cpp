#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_acosh(Backward& b) {
  const ValueId rest = b.mul(b.shift(b.x(), -1.0), b.shift(b.x(), 1.0));
  return b.div(b.g(), b.fn("sqrt", rest));
}

}  // namespace

const ir::OpDef& op_acosh() {
  static const ir::OpDef def{
      .name = "acosh",
      .summary = "The inverse hyperbolic cosine; NaN below 1.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::acosh>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_acosh>,
      .onnx = {.name = "Acosh"},
      .draw = {.lo = 1.1, .hi = 3.0},
  };
  return def;
}

}  // namespace pyc::ops
