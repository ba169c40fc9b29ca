#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_tanh(Backward& b) {
  return b.mul(b.g(), b.shift(b.neg(b.mul(b.y(), b.y())), 1.0));
}

}  // namespace

const ir::OpDef& op_tanh() {
  static const ir::OpDef def{
      .name = "tanh",
      .summary = "The hyperbolic tangent.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::tanh>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_tanh>,
      .onnx = {.name = "Tanh"},
  };
  return def;
}

}  // namespace pyc::ops
