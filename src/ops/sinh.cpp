#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_sinh() {
  static const ir::OpDef def{
      .name = "sinh",
      .summary = "The hyperbolic sine.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::sinh>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
