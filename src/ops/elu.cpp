#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_elu(LowerContext& context, Expr x) {
  const Expr below = loop::expm1(x) * context.attr_float("alpha");
  return select(lt(x, like(x, 0.0)), below, x);
}

ValueId gradient_elu(Backward& b) {
  const ValueId below = b.less(b.x(), b.scalar_like(b.x(), 0.0));
  // exp only of what is negative: it cannot overflow where it is not taken.
  const ValueId slope = b.scale(b.fn("exp", b.only(below, b.x())), b.attrs().attr_float("alpha"));
  return b.where(below, b.mul(b.g(), slope), b.g());
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
      .gradient = gradient_of_one<gradient_elu>,
      .onnx = {.name = "Elu", .attrs = "alpha"},
  };
  return def;
}

}  // namespace pyc::ops
