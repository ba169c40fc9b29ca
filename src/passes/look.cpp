#include "passes/look.h"

#include <fmt/format.h>

namespace pyc::passes {

std::vector<int> count_readers(const ir::Graph& graph) {
  std::vector<int> readers(graph.values.size(), 0);
  for (const ir::Node& node : graph.nodes) {
    for (const ir::ValueId v : node.inputs) ++readers[v];
  }
  for (const ir::ValueId v : graph.outputs) ++readers[v];
  return readers;
}

ir::ValueId behind_copies(const ir::Patch& patch, ir::ValueId v) {
  for (ir::NodeView node = patch.producer(v); node; node = patch.producer(v)) {
    const bool may_copy = node.is("identity") || node.is("cast") || node.is("reshape");
    if (!may_copy || node.input_type(0) != node.type()) return v;
    v = node.input(0);
  }
  return v;
}

std::optional<double> constant_number(const ir::Patch& patch, ir::ValueId v) {
  const auto word = patch.uniform(v);
  if (!word) return std::nullopt;
  return word_to_double(*word, patch.type(v).dtype);
}

Result<bool> apply_rules(ir::Patch& patch, const ir::NodeView& node, const PassContext& context) {
  if (node.op().simplify == nullptr) return false;
  const size_t before = patch.rules().size();
  const ir::ValueId by = node.op().simplify(patch, node);
  if (by == ir::kNoId) return false;
  if (patch.rules().size() == before) {
    return Status(Code::kInternal,
                  fmt::format("a rule of op '{}' does not say its name", node.op().name));
  }
  context.count(patch.rules().back());
  patch.replace(node.outputs()[0], by);
  return true;
}

}  // namespace pyc::passes
