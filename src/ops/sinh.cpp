#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_sinh(Backward& b) { return b.mul(b.g(), b.fn("cosh", b.x())); }

}  // namespace

const ir::OpDef& op_sinh() {
  static const ir::OpDef def{
      .name = "sinh",
      .summary = "The hyperbolic sine.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::sinh>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_sinh>,
      .onnx = {.name = "Sinh"},
  };
  return def;
}

}  // namespace pyc::ops
