#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_atanh() {
  static const ir::OpDef def{
      .name = "atanh",
      .summary = "The inverse hyperbolic tangent; NaN outside of [-1, 1].",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::atanh>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
