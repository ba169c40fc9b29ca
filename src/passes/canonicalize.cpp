#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/inline_vector.h"
#include "passes/look.h"

namespace pyc::passes {
namespace {

using Inputs = InlineVector<ir::ValueId, 4>;

// Nothing when they are canonical. `types` has room for those of the inputs.
std::optional<ir::Attrs> canonical_attrs(const ir::NodeView& node,
                                         std::vector<ir::TensorType>& types) {
  if (node.op().canonical_attrs == nullptr) return std::nullopt;
  if (types.size() < node.inputs()) types.resize(node.inputs());
  for (size_t i = 0; i < node.inputs(); ++i) types[i] = node.input_type(i);
  ir::Attrs attrs =
      node.op().canonical_attrs({std::span(types).first(node.inputs()), node.attrs()});
  if (attrs == node.attrs()) return std::nullopt;
  return attrs;
}

// Not every op broadcasts all of its operands.
bool gives_same_type(const ir::Patch& patch, const ir::NodeView& node, const Inputs& inputs) {
  std::vector<ir::TensorType> types;
  for (const ir::ValueId v : inputs) types.push_back(patch.type(v));
  const auto made = node.op().infer({types, node.attrs()});
  return made.ok() && made->size() == 1 && made->front() == node.type();
}

// Broadcasting does what an `expand` before an elementwise op did, if the result stays the same.
void drop_expands(const ir::Patch& patch, const ir::NodeView& node, Inputs& inputs) {
  for (ir::ValueId& input : inputs) {
    const ir::NodeView producer = patch.producer(input);
    if (!producer.is("expand")) continue;
    const ir::ValueId expanded = input;
    input = producer.input(0);
    if (!gives_same_type(patch, node, inputs)) input = expanded;
  }
}

Inputs canonical_inputs(const ir::Patch& patch, const ir::NodeView& node, Inputs inputs) {
  const ir::Traits& traits = node.op().traits;
  if (traits.elementwise && inputs.size() > 1) drop_expands(patch, node, inputs);
  const auto is_constant = [&](ir::ValueId v) { return patch.constant(v) != nullptr; };
  if (traits.commutative && is_constant(inputs[0]) && !is_constant(inputs[1])) {
    std::swap(inputs[0], inputs[1]);
  }
  return inputs;
}

}  // namespace

Result<bool> canonicalize(ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, context.ops);
  std::vector<ir::TensorType> types;  // of the node looked at, and of those before
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) {
    const ir::NodeView node = patch.node(n);
    patch.at(n);
    const ir::OpDef& op = node.op();
    if (op.traits.moves_data) {
      PYC_ASSIGN(const bool replaced, apply_rules(patch, node, context));
      if (replaced) continue;
    }
    const std::optional<ir::Attrs> attrs = canonical_attrs(node, types);
    Inputs given;
    for (size_t i = 0; i < node.inputs(); ++i) given.push_back(node.input(i));
    const Inputs inputs = canonical_inputs(patch, node, given);
    if (!attrs && inputs == given) continue;
    if (attrs) context.count("attributes");
    if (inputs != given) context.count("operands");
    const ir::ValueId first =
        patch.op(op.name, std::vector(inputs.begin(), inputs.end()), attrs ? *attrs : node.attrs());
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      patch.replace(node.outputs()[i], first + static_cast<ir::ValueId>(i));
    }
  }
  return patch.apply();
}

}  // namespace pyc::passes
