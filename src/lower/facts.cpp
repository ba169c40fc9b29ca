#include "lower/facts.h"

#include <string_view>
#include <variant>

namespace pyc::lower {
namespace {

using ir::ValueId;

// The node of that op that makes `v`; null if there is none.
const ir::Node* made_by(const ir::Graph& graph, ValueId v, std::string_view op) {
  const ir::Value& value = graph.value(v);
  if (value.kind != ir::ValueKind::kResult) return nullptr;
  const ir::Node& node = graph.nodes[value.producer];
  return node.op->name == op ? &node : nullptr;
}

// Converting among these keeps the order, what is not positive and NaN. Of the narrower ones some
// have no NaN, and make a number of it.
bool is_ordered(DType t) {
  return t == DType::kF16 || t == DType::kBF16 || t == DType::kF32 || t == DType::kF64;
}

// Whether `m` is the maximum of `x`, its dims kept, so that each stands beside its own elements.
bool is_maximum(const ir::Graph& graph, ValueId m, ValueId x) {
  const ir::Node* node = made_by(graph, m, "reduce_max");
  return node != nullptr && node->inputs[0] == x && std::get<bool>(node->attrs.at("keepdims"));
}

}  // namespace

bool at_most_zero(const ir::Graph& graph, ValueId v) {
  const ir::Node* cast = made_by(graph, v, "cast");
  while (cast != nullptr && is_ordered(graph.type(v).dtype)) {
    v = cast->inputs[0];
    cast = made_by(graph, v, "cast");
  }
  if (!is_ordered(graph.type(v).dtype)) return false;
  if (const ir::Node* sub = made_by(graph, v, "sub"); sub != nullptr) {
    return is_maximum(graph, sub->inputs[1], sub->inputs[0]);
  }
  const ir::Node* neg = made_by(graph, v, "neg");
  return neg != nullptr && made_by(graph, neg->inputs[0], "abs") != nullptr;
}

}  // namespace pyc::lower
