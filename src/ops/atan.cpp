#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_atan(Backward& b) { return b.div(b.g(), b.shift(b.mul(b.x(), b.x()), 1.0)); }

}  // namespace

const ir::OpDef& op_atan() {
  static const ir::OpDef def{
      .name = "atan",
      .summary = "The inverse tangent.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::atan>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_atan>,
      .onnx = {.name = "Atan"},
  };
  return def;
}

}  // namespace pyc::ops
