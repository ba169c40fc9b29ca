#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_sin() {
  static const ir::OpDef def{
      .name = "sin",
      .summary = "The sine; NaN for infinities.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::sin>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
