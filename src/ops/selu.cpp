#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_selu(LowerContext& context, Expr x) {
  const Expr below = loop::expm1(x) * context.attr_float("alpha");
  return select(lt(x, like(x, 0.0)), below, x) * context.attr_float("gamma");
}

}  // namespace

const ir::OpDef& op_selu() {
  static const ir::OpDef def{
      .name = "selu",
      .summary = "gamma * x, or gamma * (alpha * (exp(x) - 1)) below 0.",
      .attrs = {optional("alpha", 1.67326319217681884765625),
                optional("gamma", 1.05070102214813232421875)},
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_selu>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
