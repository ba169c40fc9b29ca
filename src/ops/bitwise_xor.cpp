#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_bitwise_xor() {
  static const ir::OpDef def{
      .name = "bitwise_xor",
      .summary = "The bits that differ, broadcast.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kIntegers); },
      .lower = lower_binary<[](Expr a, Expr b) { return a ^ b; }>,
      .traits = {.elementwise = true},
      .no_gradient = "it works on bits of integers",
      .onnx = {.name = "BitwiseXor"},
  };
  return def;
}

}  // namespace pyc::ops
