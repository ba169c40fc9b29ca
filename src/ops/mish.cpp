#include "ops/support/activations.h"

namespace pyc::ops {
namespace {

Expr formula_mish(Expr x) { return x * loop::tanh(softplus(x)); }

}  // namespace

const ir::OpDef& op_mish() {
  static const ir::OpDef def{
      .name = "mish",
      .summary = "x * tanh(softplus(x)).",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_mish>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
