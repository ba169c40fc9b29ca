#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_celu(LowerContext& context, Expr x) {
  const double alpha = context.attr_float("alpha");
  const Expr zero = like(x, 0.0);
  return max(zero, x) + min(zero, loop::expm1(x / alpha) * alpha);
}

}  // namespace

const ir::OpDef& op_celu() {
  static const ir::OpDef def{
      .name = "celu",
      .summary = "max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).",
      .attrs = {optional("alpha", 1.0)},
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_celu>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
