#include <algorithm>
#include <set>

#include "passes/passes.h"

namespace pyc::passes {
namespace {

bool is_composite(const ir::Node& node) { return node.op->decompose != nullptr; }

// One round: composites become the ops of their definition, which may be composites again.
Result<ir::Graph> expand(const ir::Graph& old, const ir::OpSet& ops) {
  ir::GraphBuilder builder(ops, old.name);
  std::vector<ir::ValueId> now(old.values.size(), ir::kNoId);
  for (ir::ValueId v : old.inputs) {
    PYC_ASSIGN(now[v], builder.input(old.value(v).name, old.type(v)));
  }
  for (ir::ValueId v = 0; v < old.values.size(); ++v) {
    const ir::Value& value = old.value(v);
    if (value.kind != ir::ValueKind::kConstant) continue;
    PYC_ASSIGN(now[v], builder.constant(value.type, value.constant, value.name));
  }
  std::vector<std::pair<ir::ValueId, std::string>> renamed;
  for (const ir::Node& node : old.nodes) {
    ir::Node copy = node;
    for (ir::ValueId& v : copy.inputs) v = now[v];
    const std::string& name = old.value(node.outputs[0]).name;
    const std::string loc = node.loc.empty() ? name : node.loc;
    if (is_composite(node)) {
      copy.loc = loc;
      PYC_ASSIGN(const std::vector<ir::ValueId> results, node.op->decompose(builder, copy));
      PYC_CHECK(results.size() == node.outputs.size(), "decompose gave another number of outputs");
      for (size_t i = 0; i < results.size(); ++i) {
        now[node.outputs[i]] = results[i];
        renamed.push_back({results[i], old.value(node.outputs[i]).name});
      }
    } else {
      PYC_ASSIGN(const ir::ValueId first,
                 builder.op(node.op->name, copy.inputs, copy.attrs, name, node.loc));
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        now[node.outputs[i]] = first + static_cast<ir::ValueId>(i);
      }
    }
  }
  for (ir::ValueId v : old.outputs) PYC_TRY(builder.output(now[v]));
  ir::Graph graph = std::move(builder).take();
  std::set<std::string, std::less<>> names;
  for (const ir::Value& value : graph.values) names.insert(value.name);
  for (const auto& [v, name] : renamed) {
    ir::Value& value = graph.values[v];
    if (value.kind == ir::ValueKind::kResult && names.insert(name).second) value.name = name;
  }
  return graph;
}

}  // namespace

Result<bool> decompose(ir::Graph& graph, const ir::OpSet& ops) {
  bool changed = false;
  while (std::any_of(graph.nodes.begin(), graph.nodes.end(), is_composite)) {
    PYC_ASSIGN(graph, expand(graph, ops));
    changed = true;
  }
  return changed;
}

}  // namespace pyc::passes
