#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_asinh() {
  static const ir::OpDef def{
      .name = "asinh",
      .summary = "The inverse hyperbolic sine.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::asinh>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
