#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_softsign(Expr x) { return x / (abs(x) + 1.0); }

ValueId gradient_softsign(Backward& b) {
  const ValueId size = b.shift(b.fn("abs", b.x()), 1.0);
  return b.div(b.g(), b.mul(size, size));
}

}  // namespace

const ir::OpDef& op_softsign() {
  static const ir::OpDef def{
      .name = "softsign",
      .summary = "x / (1 + |x|).",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_softsign>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_softsign>,
      .onnx = {.name = "Softsign"},
  };
  return def;
}

}  // namespace pyc::ops
