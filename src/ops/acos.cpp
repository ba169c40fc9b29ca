#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_acos() {
  static const ir::OpDef def{
      .name = "acos",
      .summary = "The inverse cosine; NaN outside of [-1, 1].",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::acos>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
