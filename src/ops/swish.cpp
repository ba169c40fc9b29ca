#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_swish(LowerContext& context, Expr x) {
  return x * loop::sigmoid(x * context.attr_float("alpha"));
}

ValueId gradient_swish(Backward& b) {
  const double alpha = b.attrs().attr_float("alpha");
  const ValueId s = b.fn("sigmoid", b.scale(b.x(), alpha));
  const ValueId bend = b.mul(b.scale(b.x(), alpha), b.mul(s, b.shift(b.neg(s), 1.0)));
  return b.mul(b.g(), b.add(s, bend));
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
      .gradient = gradient_of_one<gradient_swish>,
      .onnx = {.name = "Swish", .attrs = "alpha", .since = 24},
  };
  return def;
}

}  // namespace pyc::ops
