#include <algorithm>

#include "passes/passes.h"

namespace pyc::passes {

Result<bool> eliminate_dead(ir::Graph& graph, const ir::OpSet&) {
  std::vector<bool> live(graph.values.size(), false);
  for (ir::ValueId v : graph.inputs) live[v] = true;
  for (ir::ValueId v : graph.outputs) live[v] = true;
  std::vector<bool> keep(graph.nodes.size(), false);
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const ir::Node& node = graph.nodes[n];
    keep[n] = std::any_of(node.outputs.begin(), node.outputs.end(),
                          [&](ir::ValueId v) { return live[v]; });
    if (!keep[n]) continue;
    for (ir::ValueId v : node.inputs) live[v] = true;
    for (ir::ValueId v : node.outputs) live[v] = true;
  }
  if (std::all_of(live.begin(), live.end(), [](bool b) { return b; })) return false;

  ir::Graph out;
  out.name = graph.name;
  std::vector<ir::ValueId> now(graph.values.size(), ir::kNoId);
  std::vector<ir::NodeId> node_now(graph.nodes.size(), ir::kNoId);
  ir::NodeId nodes = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (keep[n]) node_now[n] = nodes++;
  }
  for (ir::ValueId v = 0; v < graph.values.size(); ++v) {
    if (!live[v]) continue;
    now[v] = static_cast<ir::ValueId>(out.values.size());
    out.values.push_back(graph.values[v]);
    ir::Value& value = out.values.back();
    if (value.kind == ir::ValueKind::kResult) value.producer = node_now[value.producer];
  }
  const auto renumber = [&](std::vector<ir::ValueId> ids) {
    for (ir::ValueId& v : ids) v = now[v];
    return ids;
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!keep[n]) continue;
    out.nodes.push_back(graph.nodes[n]);
    out.nodes.back().inputs = renumber(graph.nodes[n].inputs);
    out.nodes.back().outputs = renumber(graph.nodes[n].outputs);
  }
  out.inputs = renumber(graph.inputs);
  out.outputs = renumber(graph.outputs);
  graph = std::move(out);
  return true;
}

}  // namespace pyc::passes
