#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_celu(LowerContext& context, Expr x) {
  const double alpha = context.attr_float("alpha");
  const Expr zero = like(x, 0.0);
  return max(zero, x) + min(zero, loop::expm1(x / alpha) * alpha);
}

ValueId gradient_celu(Backward& b) {
  const ValueId below = b.less(b.x(), b.scalar_like(b.x(), 0.0));
  // exp only of what is negative: it cannot overflow where it is not taken.
  const ValueId alpha = b.scalar_like(b.x(), b.attrs().attr_float("alpha"));
  const ValueId slope = b.fn("exp", b.div(b.only(below, b.x()), alpha));
  return b.where(below, b.mul(b.g(), slope), b.g());
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
      .gradient = gradient_of_one<gradient_celu>,
      .onnx = {.name = "Celu", .attrs = "alpha", .dtypes = "f32"},
  };
  return def;
}

}  // namespace pyc::ops
