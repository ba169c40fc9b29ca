#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_logical_and() {
  static const ir::OpDef def{
      .name = "logical_and",
      .summary = "Whether both hold, broadcast.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kBools); },
      .lower = lower_binary<[](Expr a, Expr b) { return a & b; }>,
      .traits = {.elementwise = true},
      .no_gradient = "its result is a bool",
      .onnx = {.name = "And", .since = 7},
  };
  return def;
}

}  // namespace pyc::ops
