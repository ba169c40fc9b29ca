#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_leaky_relu(LowerContext& context, Expr x) {
  return select(lt(x, like(x, 0.0)), x * context.attr_float("alpha"), x);
}

ValueId gradient_leaky_relu(Backward& b) {
  const ValueId below = b.less(b.x(), b.scalar_like(b.x(), 0.0));
  return b.where(below, b.scale(b.g(), b.attrs().attr_float("alpha")), b.g());
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
      .gradient = gradient_of_one<gradient_leaky_relu>,
      .onnx = {.name = "LeakyRelu", .attrs = "alpha"},
  };
  return def;
}

}  // namespace pyc::ops
