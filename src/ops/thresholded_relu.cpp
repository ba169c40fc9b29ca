#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_thresholded_relu(LowerContext& context, Expr x) {
  return select(lt(like(x, context.attr_float("alpha")), x), x, like(x, 0.0));
}

ValueId gradient_thresholded_relu(Backward& b) {
  const ValueId alpha = b.scalar_like(b.x(), b.attrs().attr_float("alpha"));
  return b.only(b.less(alpha, b.x()), b.g());
}

}  // namespace

const ir::OpDef& op_thresholded_relu() {
  static const ir::OpDef def{
      .name = "thresholded_relu",
      .summary = "x where it is above alpha, else 0; 0 for NaN.",
      .attrs = {optional("alpha", 1.0)},
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_thresholded_relu>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_thresholded_relu>,
      .onnx = {.name = "ThresholdedRelu", .attrs = "alpha"},
      .draw = {.sharp = true, .lo = -3.0, .hi = 3.0},
  };
  return def;
}

}  // namespace pyc::ops
