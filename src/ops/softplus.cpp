#include "ops/support/activations.h"
#include "ops/support/backward.h"

namespace pyc::ops {

namespace {

ValueId gradient_softplus(Backward& b) { return b.mul(b.g(), b.fn("sigmoid", b.x())); }

}  // namespace

const ir::OpDef& op_softplus() {
  static const ir::OpDef def{
      .name = "softplus",
      .summary = "log(1 + exp(x)), as max(x, 0) + log1p(exp(-|x|)).",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<softplus>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_softplus>,
      .onnx = {.name = "Softplus"},
  };
  return def;
}

}  // namespace pyc::ops
