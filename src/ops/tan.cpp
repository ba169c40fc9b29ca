#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_tan() {
  static const ir::OpDef def{
      .name = "tan",
      .summary = "The tangent; NaN for infinities.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::tan>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
