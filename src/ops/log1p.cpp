#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_log1p() {
  static const ir::OpDef def{
      .name = "log1p",
      .summary = "log(1 + x), exact also near 0; NaN below -1.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::log1p>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
