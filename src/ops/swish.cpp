#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_swish(LowerContext& context, Expr x) {
  return x * loop::sigmoid(x * context.attr_float("alpha"));
}

}  // namespace

const ir::OpDef& op_swish() {
  static const ir::OpDef def{
      .name = "swish",
      .summary = "x * sigmoid(alpha * x).",
      .attrs = {optional("alpha", 1.0)},
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_swish>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
