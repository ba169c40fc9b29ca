#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_atan() {
  static const ir::OpDef def{
      .name = "atan",
      .summary = "The inverse tangent.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::atan>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
