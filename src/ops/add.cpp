#include "ops/support/backward.h"
#include "ops/support/elementwise.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

ValueId simplify_add(Patch& patch, const NodeView& node) {
  // -0 + +0 = +0, so that of the two zeros only -0 is neutral.
  const double neutral = is_float(node.type().dtype) ? -0.0 : 0.0;
  const ValueId x = drop_neutral(patch, node, neutral);
  if (x != kNoId) return patch.by("add_zero", x);
  for (size_t i = 0; i < 2; ++i) {
    const NodeView negated = patch.producer(node.input(i));
    if (!negated.is("neg")) continue;
    return patch.by("add_neg", patch.op("sub", {node.input(1 - i), negated.input(0)}));
  }
  return kNoId;
}

Grads gradient_add(ir::GraphBuilder& builder, const ir::Node& node,
                   std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  return b.outputs({b.to_input(b.g(), 0), b.to_input(b.g(), 1)});
}

}  // namespace

const ir::OpDef& op_add() {
  static const ir::OpDef def{
      .name = "add",
      .summary = "a + b, broadcast; integers wrap.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_binary<[](Expr a, Expr b) { return a + b; }>,
      .traits = {.elementwise = true, .commutative = true},
      .simplify = simplify_add,
      .gradient = gradient_add,
      .onnx = {.name = "Add", .since = 7},
  };
  return def;
}

}  // namespace pyc::ops
