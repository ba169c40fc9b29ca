#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_sigmoid(Backward& b) {
  return b.mul(b.g(), b.mul(b.y(), b.shift(b.neg(b.y()), 1.0)));
}

}  // namespace

const ir::OpDef& op_sigmoid() {
  static const ir::OpDef def{
      .name = "sigmoid",
      .summary = "1 / (1 + exp(-x)).",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::sigmoid>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_sigmoid>,
      .onnx = {.name = "Sigmoid"},
  };
  return def;
}

}  // namespace pyc::ops
