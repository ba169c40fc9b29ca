#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_cos() {
  static const ir::OpDef def{
      .name = "cos",
      .summary = "The cosine; NaN for infinities.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::cos>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
