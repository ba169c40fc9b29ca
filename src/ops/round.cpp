#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_round() {
  static const ir::OpDef def{
      .name = "round",
      .summary = "The nearest integer, halves to even; keeps -0.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::round_even>,
      .traits = {.elementwise = true},
      .no_gradient = "a step: its derivative is 0 or does not exist",
      .onnx = {.name = "Round"},
      .draw = {.sharp = true, .lo = -3.0, .hi = 3.0},
  };
  return def;
}

}  // namespace pyc::ops
