#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_selu(LowerContext& context, Expr x) {
  const Expr below = loop::expm1(x) * context.attr_float("alpha");
  return select(lt(x, like(x, 0.0)), below, x) * context.attr_float("gamma");
}

ValueId gradient_selu(Backward& b) {
  const ValueId below = b.less(b.x(), b.scalar_like(b.x(), 0.0));
  // exp only of what is negative: it cannot overflow where it is not taken.
  const ValueId slope = b.scale(b.fn("exp", b.only(below, b.x())), b.attrs().attr_float("alpha"));
  return b.scale(b.where(below, b.mul(b.g(), slope), b.g()), b.attrs().attr_float("gamma"));
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
      .gradient = gradient_of_one<gradient_selu>,
      .onnx = {.name = "Selu", .attrs = "alpha gamma"},
  };
  return def;
}

}  // namespace pyc::ops
