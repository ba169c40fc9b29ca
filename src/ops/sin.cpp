#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_sin(Backward& b) { return b.mul(b.g(), b.fn("cos", b.x())); }

}  // namespace

const ir::OpDef& op_sin() {
  static const ir::OpDef def{
      .name = "sin",
      .summary = "The sine; NaN for infinities.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::sin>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_sin>,
      .onnx = {.name = "Sin"},
  };
  return def;
}

}  // namespace pyc::ops
