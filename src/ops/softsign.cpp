#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_softsign(Expr x) { return x / (abs(x) + 1.0); }

}  // namespace

const ir::OpDef& op_softsign() {
  static const ir::OpDef def{
      .name = "softsign",
      .summary = "x / (1 + |x|).",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_softsign>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
