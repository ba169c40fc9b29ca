#include "ops/support/activations.h"
#include "ops/support/backward.h"

namespace pyc::ops {
namespace {

Expr formula_hard_sigmoid(LowerContext& context, Expr x) {
  return hard_sigmoid(x, context.attr_float("alpha"), context.attr_float("beta"));
}

ValueId gradient_hard_sigmoid(Backward& b) {
  // 0 at both ends of the slope.
  const double alpha = b.attrs().attr_float("alpha");
  const ValueId line = b.shift(b.scale(b.x(), alpha), b.attrs().attr_float("beta"));
  const ValueId above = b.less(b.scalar_like(line, 0.0), line);
  const ValueId below = b.less(line, b.scalar_like(line, 1.0));
  return b.only(b.op("logical_and", {above, below}), b.scale(b.g(), alpha));
}

}  // namespace

const ir::OpDef& op_hard_sigmoid() {
  static const ir::OpDef def{
      .name = "hard_sigmoid",
      .summary = "max(0, min(1, x * alpha + beta)).",
      .attrs = {optional("alpha", 0.2), optional("beta", 0.5)},
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_hard_sigmoid>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_hard_sigmoid>,
      .onnx = {.name = "HardSigmoid", .attrs = "alpha beta"},
  };
  return def;
}

}  // namespace pyc::ops
