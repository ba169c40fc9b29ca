#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_cosh() {
  static const ir::OpDef def{
      .name = "cosh",
      .summary = "The hyperbolic cosine.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::cosh>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
