#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_cos(Backward& b) { return b.neg(b.mul(b.g(), b.fn("sin", b.x()))); }

}  // namespace

const ir::OpDef& op_cos() {
  static const ir::OpDef def{
      .name = "cos",
      .summary = "The cosine; NaN for infinities.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::cos>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_cos>,
      .onnx = {.name = "Cos"},
  };
  return def;
}

}  // namespace pyc::ops
