#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_shift_right() {
  static const ir::OpDef def{
      .name = "shift_right",
      .summary = "a / 2^b rounded down, broadcast; 0 (or -1 below 0) when b is the width or more.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kIntegers); },
      .lower = lower_binary<loop::shr>,
      .traits = {.elementwise = true},
      .no_gradient = "it works on bits of integers",
  };
  return def;
}

}  // namespace pyc::ops
