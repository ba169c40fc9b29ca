#include "autograd/prune.h"

#include <utility>

namespace pyc::autograd {
namespace {

// By value: whether an output, a kept node or a node that is needed itself reads or makes it.
std::vector<bool> needed_values(const ir::Graph& graph, size_t kept_nodes, size_t kept_values) {
  std::vector<bool> needed(graph.values.size(), false);
  for (size_t v = 0; v < kept_values; ++v) needed[v] = true;
  for (ir::ValueId v : graph.outputs) needed[v] = true;
  for (size_t n = graph.nodes.size(); n-- > kept_nodes;) {
    const ir::Node& node = graph.nodes[n];
    bool used = false;
    for (ir::ValueId v : node.outputs) used = used || needed[v];
    if (!used) continue;
    for (ir::ValueId v : node.outputs) needed[v] = true;
    for (ir::ValueId v : node.inputs) needed[v] = true;
  }
  return needed;
}

}  // namespace

ir::Graph without_unused(ir::Graph graph, size_t kept_nodes, size_t kept_values) {
  const std::vector<bool> needed = needed_values(graph, kept_nodes, kept_values);
  std::vector<ir::ValueId> now(graph.values.size(), ir::kNoId);
  std::vector<ir::Value> values;
  for (ir::ValueId v = 0; v < graph.values.size(); ++v) {
    if (!needed[v]) continue;
    now[v] = static_cast<ir::ValueId>(values.size());
    values.push_back(std::move(graph.values[v]));
  }
  std::vector<ir::Node> nodes;
  for (ir::Node& node : graph.nodes) {
    if (now[node.outputs[0]] == ir::kNoId) continue;
    for (ir::ValueId& v : node.inputs) v = now[v];
    for (ir::ValueId& v : node.outputs) {
      v = now[v];
      values[v].producer = static_cast<ir::NodeId>(nodes.size());
    }
    nodes.push_back(std::move(node));
  }
  for (ir::ValueId& v : graph.outputs) v = now[v];
  graph.values = std::move(values);
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace pyc::autograd
