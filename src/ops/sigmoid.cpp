#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_sigmoid() {
  static const ir::OpDef def{
      .name = "sigmoid",
      .summary = "1 / (1 + exp(-x)).",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::sigmoid>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
