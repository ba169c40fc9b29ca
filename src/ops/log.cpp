#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_log(Backward& b) { return b.div(b.g(), b.x()); }

}  // namespace

const ir::OpDef& op_log() {
  static const ir::OpDef def{
      .name = "log",
      .summary = "The natural logarithm.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::log>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_log>,
      .onnx = {.name = "Log"},
  };
  return def;
}

}  // namespace pyc::ops
