#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_greater() {
  static const ir::OpDef def{
      .name = "greater",
      .summary = "Whether a > b, broadcast; false for NaN.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_comparison(args, kNumbers); },
      .lower = lower_binary<loop::gt>,
      .traits = {.elementwise = true},
      .no_gradient = "its result is a bool",
      .onnx = {.name = "Greater", .since = 7},
      .draw = {.sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
