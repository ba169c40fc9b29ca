#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_expm1() {
  static const ir::OpDef def{
      .name = "expm1",
      .summary = "exp(x) - 1, exact also near 0.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::expm1>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
