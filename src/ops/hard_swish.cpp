#include "ops/support/activations.h"

namespace pyc::ops {
namespace {

Expr formula_hard_swish(Expr x) { return x * hard_sigmoid(x, 1.0 / 6.0, 0.5); }

}  // namespace

const ir::OpDef& op_hard_swish() {
  static const ir::OpDef def{
      .name = "hard_swish",
      .summary = "x * max(0, min(1, x / 6 + 0.5)).",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_hard_swish>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
