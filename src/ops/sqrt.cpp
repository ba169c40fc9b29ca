#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_sqrt(Backward& b) { return b.div(b.g(), b.scale(b.y(), 2.0)); }

}  // namespace

const ir::OpDef& op_sqrt() {
  static const ir::OpDef def{
      .name = "sqrt",
      .summary = "The square root.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::sqrt>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_sqrt>,
      .onnx = {.name = "Sqrt"},
  };
  return def;
}

}  // namespace pyc::ops
