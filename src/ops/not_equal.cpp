#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_not_equal() {
  static const ir::OpDef def{
      .name = "not_equal",
      .summary = "Whether a != b, broadcast; true for NaN.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_comparison(args, kAnyDType); },
      .lower = lower_binary<loop::ne>,
      .traits = {.elementwise = true},
      .no_gradient = "its result is a bool",
      .draw = {.sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
