#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_asin() {
  static const ir::OpDef def{
      .name = "asin",
      .summary = "The inverse sine; NaN outside of [-1, 1].",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::asin>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
