#include "ops/support/backward.h"
#include "ops/support/elementwise.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

ValueId simplify_mul(Patch& patch, const NodeView& node) {
  if (const ValueId x = drop_neutral(patch, node, 1.0); x != kNoId) return patch.by("mul_one", x);
  if (is_float(node.type().dtype)) return kNoId;  // 0 * -1 = -0, 0 * inf = NaN
  const bool zero = patch.is_uniform(node.input(0), 0.0) || patch.is_uniform(node.input(1), 0.0);
  return zero ? patch.by("mul_zero", zeros_like(patch, node)) : kNoId;
}

Grads gradient_mul(ir::GraphBuilder& builder, const ir::Node& node,
                   std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  return b.outputs({b.to_input(b.mul(b.g(), b.x(1)), 0), b.to_input(b.mul(b.g(), b.x(0)), 1)});
}

}  // namespace

const ir::OpDef& op_mul() {
  static const ir::OpDef def{
      .name = "mul",
      .summary = "a * b, broadcast; integers wrap.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_binary<[](Expr a, Expr b) { return a * b; }>,
      .traits = {.elementwise = true, .commutative = true},
      .simplify = simplify_mul,
      .gradient = gradient_mul,
      .onnx = {.name = "Mul", .since = 7},
  };
  return def;
}

}  // namespace pyc::ops
