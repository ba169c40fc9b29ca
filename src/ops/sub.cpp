#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_sub() {
  static const ir::OpDef def{
      .name = "sub",
      .summary = "a - b, broadcast; integers wrap.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_binary<[](Expr a, Expr b) { return a - b; }>,
  };
  return def;
}

}  // namespace pyc::ops
