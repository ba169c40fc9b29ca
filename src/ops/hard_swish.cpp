#include "ops/support/activations.h"
#include "ops/support/backward.h"

namespace pyc::ops {
namespace {

Expr formula_hard_swish(Expr x) { return x * hard_sigmoid(x, 1.0 / 6.0, 0.5); }

ValueId gradient_hard_swish(Backward& b) {
  const ValueId low = b.less(b.x(), b.scalar_like(b.x(), -3.0));
  const ValueId high = b.less(b.scalar_like(b.x(), 3.0), b.x());
  const ValueId slope = b.shift(b.scale(b.x(), 1.0 / 3.0), 0.5);
  return b.except(low, b.where(high, b.g(), b.mul(b.g(), slope)));
}

}  // namespace

const ir::OpDef& op_hard_swish() {
  static const ir::OpDef def{
      .name = "hard_swish",
      .summary = "x * max(0, min(1, x / 6 + 0.5)).",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_hard_swish>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_hard_swish>,
      .onnx = {.name = "HardSwish"},
  };
  return def;
}

}  // namespace pyc::ops
