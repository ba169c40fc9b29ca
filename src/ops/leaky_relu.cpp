#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_leaky_relu(LowerContext& context, Expr x) {
  return select(lt(x, like(x, 0.0)), x * context.attr_float("alpha"), x);
}

}  // namespace

const ir::OpDef& op_leaky_relu() {
  static const ir::OpDef def{
      .name = "leaky_relu",
      .summary = "x, or alpha * x below 0.",
      .attrs = {optional("alpha", 0.01)},
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_leaky_relu>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
