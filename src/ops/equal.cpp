#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_equal() {
  static const ir::OpDef def{
      .name = "equal",
      .summary = "Whether a = b, broadcast; false for NaN.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_comparison(args, kAnyDType); },
      .lower = lower_binary<loop::eq>,
      .traits = {.elementwise = true, .commutative = true},
      .no_gradient = "its result is a bool",
      .onnx = {.name = "Equal", .since = 7},
      .draw = {.sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
