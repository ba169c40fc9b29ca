#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_ceil() {
  static const ir::OpDef def{
      .name = "ceil",
      .summary = "The smallest integer not below x; keeps -0.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::ceil>,
      .traits = {.elementwise = true},
      .no_gradient = "a step: its derivative is 0 or does not exist",
      .onnx = {.name = "Ceil"},
      .draw = {.sharp = true, .lo = -3.0, .hi = 3.0},
  };
  return def;
}

}  // namespace pyc::ops
