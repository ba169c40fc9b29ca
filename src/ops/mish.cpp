#include "ops/support/activations.h"
#include "ops/support/backward.h"

namespace pyc::ops {
namespace {

Expr formula_mish(Expr x) { return x * loop::tanh(softplus(x)); }

ValueId gradient_mish(Backward& b) {
  const ValueId t = b.fn("tanh", b.fn("softplus", b.x()));
  const ValueId bend = b.mul(b.shift(b.neg(b.mul(t, t)), 1.0), b.fn("sigmoid", b.x()));
  return b.mul(b.g(), b.add(t, b.mul(b.x(), bend)));
}

}  // namespace

const ir::OpDef& op_mish() {
  static const ir::OpDef def{
      .name = "mish",
      .summary = "x * tanh(softplus(x)).",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<formula_mish>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_mish>,
      .onnx = {.name = "Mish"},
  };
  return def;
}

}  // namespace pyc::ops
