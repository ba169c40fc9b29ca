#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_shift_left() {
  static const ir::OpDef def{
      .name = "shift_left",
      .summary = "a * 2^b, broadcast, bits above the width lost; 0 when b is the width or more.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kIntegers); },
      .lower = lower_binary<loop::shl>,
      .traits = {.elementwise = true},
      .no_gradient = "it works on bits of integers",
  };
  return def;
}

}  // namespace pyc::ops
