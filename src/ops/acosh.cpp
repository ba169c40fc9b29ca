#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_acosh() {
  static const ir::OpDef def{
      .name = "acosh",
      .summary = "The inverse hyperbolic cosine; NaN below 1.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::acosh>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
