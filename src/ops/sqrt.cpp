#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_sqrt() {
  static const ir::OpDef def{
      .name = "sqrt",
      .summary = "The square root.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::sqrt>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
