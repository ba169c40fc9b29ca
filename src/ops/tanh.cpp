#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_tanh() {
  static const ir::OpDef def{
      .name = "tanh",
      .summary = "The hyperbolic tangent.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::tanh>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
