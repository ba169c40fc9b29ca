#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_exp() {
  static const ir::OpDef def{
      .name = "exp",
      .summary = "e to the power of x.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::exp>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
