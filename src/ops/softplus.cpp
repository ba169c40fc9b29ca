#include "ops/support/activations.h"

namespace pyc::ops {

const ir::OpDef& op_softplus() {
  static const ir::OpDef def{
      .name = "softplus",
      .summary = "log(1 + exp(x)), as max(x, 0) + log1p(exp(-|x|)).",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<softplus>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
