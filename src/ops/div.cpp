#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_div() {
  static const ir::OpDef def{
      .name = "div",
      .summary = "a / b, broadcast; integers truncate, x / 0 = 0.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_binary<[](Expr a, Expr b) { return a / b; }>,
  };
  return def;
}

}  // namespace pyc::ops
