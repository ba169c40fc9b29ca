#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_reciprocal() {
  static const ir::OpDef def{
      .name = "reciprocal",
      .summary = "1 / x.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<[](Expr x) { return like(x, 1.0) / x; }>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
