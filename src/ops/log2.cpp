#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_log2() {
  static const ir::OpDef def{
      .name = "log2",
      .summary = "The logarithm to base 2; NaN below 0.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::log2>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
