#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_cosh(Backward& b) { return b.mul(b.g(), b.fn("sinh", b.x())); }

}  // namespace

const ir::OpDef& op_cosh() {
  static const ir::OpDef def{
      .name = "cosh",
      .summary = "The hyperbolic cosine.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::cosh>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_cosh>,
      .onnx = {.name = "Cosh"},
  };
  return def;
}

}  // namespace pyc::ops
