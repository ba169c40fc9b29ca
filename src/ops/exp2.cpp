#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_exp2() {
  static const ir::OpDef def{
      .name = "exp2",
      .summary = "2 to the power of x.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::exp2>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
