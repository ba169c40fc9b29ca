#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_erf() {
  static const ir::OpDef def{
      .name = "erf",
      .summary = "The error function.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::erf>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
