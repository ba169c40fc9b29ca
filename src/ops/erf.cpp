#include <numbers>

#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_erf(Backward& b) {
  const ValueId bell = b.fn("exp", b.neg(b.mul(b.x(), b.x())));
  return b.mul(b.g(), b.scale(bell, 2.0 * std::numbers::inv_sqrtpi));
}

}  // namespace

const ir::OpDef& op_erf() {
  static const ir::OpDef def{
      .name = "erf",
      .summary = "The error function.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::erf>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_erf>,
      .onnx = {.name = "Erf"},
  };
  return def;
}

}  // namespace pyc::ops
