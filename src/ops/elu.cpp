#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_elu(LowerContext& context, Expr x) {
  const Expr below = loop::expm1(x) * context.attr_float("alpha");
  return select(lt(x, like(x, 0.0)), below, x);
}

}  // namespace

const ir::OpDef& op_elu() {
  static const ir::OpDef def{
      .name = "elu",
      .summary = "x, or alpha * (exp(x) - 1) below 0.",
      .attrs = {optional("alpha", 1.0)},
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_elu>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
