#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_max() {
  static const ir::OpDef def{
      .name = "max",
      .summary = "The larger of a and b, broadcast; NaN wins, -0 < +0.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_binary<loop::max>,
  };
  return def;
}

}  // namespace pyc::ops
