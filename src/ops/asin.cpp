#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_asin(Backward& b) {
  const ValueId rest = b.shift(b.neg(b.mul(b.x(), b.x())), 1.0);
  return b.div(b.g(), b.fn("sqrt", rest));
}

}  // namespace

const ir::OpDef& op_asin() {
  static const ir::OpDef def{
      .name = "asin",
      .summary = "The inverse sine; NaN outside of [-1, 1].",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::asin>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_asin>,
      .onnx = {.name = "Asin"},
      .draw = {.lo = -0.9, .hi = 0.9},
  };
  return def;
}

}  // namespace pyc::ops
