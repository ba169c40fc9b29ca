#include "ops/support/activations.h"

namespace pyc::ops {
namespace {

Expr formula_hard_sigmoid(LowerContext& context, Expr x) {
  return hard_sigmoid(x, context.attr_float("alpha"), context.attr_float("beta"));
}

}  // namespace

const ir::OpDef& op_hard_sigmoid() {
  static const ir::OpDef def{
      .name = "hard_sigmoid",
      .summary = "max(0, min(1, x * alpha + beta)).",
      .attrs = {optional("alpha", 0.2), optional("beta", 0.5)},
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_hard_sigmoid>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
