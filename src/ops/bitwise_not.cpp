#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_bitwise_not() {
  static const ir::OpDef def{
      .name = "bitwise_not",
      .summary = "All bits inverted.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kIntegers); },
      .lower = lower_unary<[](Expr x) { return ~x; }>,
      .traits = {.elementwise = true},
      .no_gradient = "it works on bits of integers",
      .onnx = {.name = "BitwiseNot"},
  };
  return def;
}

}  // namespace pyc::ops
