#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

Expr exp_of(LowerContext& context, Expr x) {
  return context.at_most_zero(0) ? loop::exp_nonpositive(x) : loop::exp(x);
}

ValueId gradient_exp(Backward& b) { return b.mul(b.g(), b.y()); }

}  // namespace

const ir::OpDef& op_exp() {
  static const ir::OpDef def{
      .name = "exp",
      .summary = "e to the power of x.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<exp_of>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_exp>,
      .onnx = {.name = "Exp"},
  };
  return def;
}

}  // namespace pyc::ops
