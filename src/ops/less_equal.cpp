#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_less_equal() {
  static const ir::OpDef def{
      .name = "less_equal",
      .summary = "Whether a <= b, broadcast; false for NaN.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_comparison(args, kNumbers); },
      .lower = lower_binary<loop::le>,
      .traits = {.elementwise = true},
      .no_gradient = "its result is a bool",
      .onnx = {.name = "LessOrEqual"},
      .draw = {.sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
