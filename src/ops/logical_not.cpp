#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_logical_not() {
  static const ir::OpDef def{
      .name = "logical_not",
      .summary = "Whether x is false.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kBools); },
      .lower = lower_unary<[](Expr x) { return ~x; }>,
      .traits = {.elementwise = true},
      .no_gradient = "its result is a bool",
      .onnx = {.name = "Not"},
  };
  return def;
}

}  // namespace pyc::ops
