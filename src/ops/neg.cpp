#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_neg() {
  static const ir::OpDef def{
      .name = "neg",
      .summary = "-x; the smallest integer stays itself.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kSigned); },
      .lower = lower_unary<[](Expr x) { return -x; }>,
  };
  return def;
}

}  // namespace pyc::ops
