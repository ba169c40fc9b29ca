#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_log() {
  static const ir::OpDef def{
      .name = "log",
      .summary = "The natural logarithm.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::log>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
