#include "ops/support/backward.h"
#include "ops/support/elementwise.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

ValueId simplify_sub(Patch& patch, const NodeView& node) {
  // -0 - +0 = -0, but -0 - -0 = +0.
  if (patch.is_uniform(node.input(1), 0.0)) {
    return patch.by("sub_zero", input_if_same(node, 0));
  }
  const bool same = node.input(0) == node.input(1);
  if (same && !is_float(node.type().dtype)) {
    return patch.by("sub_itself", zeros_like(patch, node));
  }
  const NodeView negated = patch.producer(node.input(1));
  if (!negated.is("neg")) return kNoId;
  return patch.by("sub_neg", patch.op("add", {node.input(0), negated.input(0)}));
}

// x less its maximum, whose dims are kept, so that each stands beside its own elements.
bool is_below_maximum(const ir::Graph& graph, const ir::Node& node) {
  const ir::Node* taken = graph.producer(node.inputs[1]);
  return taken != nullptr && taken->op->name == "reduce_max" &&
         taken->inputs[0] == node.inputs[0] && std::get<bool>(taken->attrs.at("keepdims"));
}

Grads gradient_sub(ir::GraphBuilder& builder, const ir::Node& node,
                   std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  return b.outputs({b.to_input(b.g(), 0), b.to_input(b.neg(b.g()), 1)});
}

}  // namespace

const ir::OpDef& op_sub() {
  static const ir::OpDef def{
      .name = "sub",
      .summary = "a - b, broadcast; integers wrap.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_binary<[](Expr a, Expr b) { return a - b; }>,
      .traits = {.elementwise = true},
      .at_most_zero = is_below_maximum,
      .simplify = simplify_sub,
      .gradient = gradient_sub,
      .onnx = {.name = "Sub", .since = 7},
  };
  return def;
}

}  // namespace pyc::ops
