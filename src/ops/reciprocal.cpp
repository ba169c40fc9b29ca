#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_reciprocal(Backward& b) { return b.neg(b.mul(b.g(), b.mul(b.y(), b.y()))); }

}  // namespace

const ir::OpDef& op_reciprocal() {
  static const ir::OpDef def{
      .name = "reciprocal",
      .summary = "1 / x.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<[](Expr x) { return like(x, 1.0) / x; }>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_reciprocal>,
      .onnx = {.name = "Reciprocal"},
  };
  return def;
}

}  // namespace pyc::ops
