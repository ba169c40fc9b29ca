#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_tan(Backward& b) { return b.mul(b.g(), b.shift(b.mul(b.y(), b.y()), 1.0)); }

}  // namespace

const ir::OpDef& op_tan() {
  static const ir::OpDef def{
      .name = "tan",
      .summary = "The tangent; NaN for infinities.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::tan>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_tan>,
      .onnx = {.name = "Tan"},
  };
  return def;
}

}  // namespace pyc::ops
