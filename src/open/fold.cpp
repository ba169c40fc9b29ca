#include "open/fold.h"

#include <algorithm>

namespace pyc::open {
namespace {

using ir::ValueId;

// The nodes `value` needs, in topological order; nothing when there are too many of them. What they
// compute is added to `total`.
std::optional<std::vector<ir::NodeId>> producers(const ir::Graph& graph, ir::ValueId value,
                                                 int64_t& total) {
  std::vector<ir::NodeId> nodes;
  std::vector<bool> seen(graph.nodes.size());
  std::vector<ir::ValueId> stack{value};
  int64_t elements = 0;
  while (!stack.empty()) {
    const ir::Value& v = graph.value(stack.back());
    stack.pop_back();
    if (v.kind != ir::ValueKind::kResult || seen[v.producer]) continue;
    seen[v.producer] = true;
    nodes.push_back(v.producer);
    const ir::Node& node = graph.nodes[v.producer];
    for (const ir::ValueId out : node.outputs) elements += graph.type(out).elements();
    if (nodes.size() > ConstantFinder::kMaxNodes || elements > ConstantFinder::kMaxElements) {
      return std::nullopt;
    }
    stack.insert(stack.end(), node.inputs.begin(), node.inputs.end());
  }
  total += elements + static_cast<int64_t>(nodes.size());
  if (total > ConstantFinder::kMaxTotal) return std::nullopt;
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

// The given nodes as a graph of their own whose only output is `value`.
Result<ir::Graph> extract(const ir::Graph& graph, std::span<const ir::NodeId> nodes,
                          ir::ValueId value, const ir::OpSet& ops) {
  ir::GraphBuilder builder(ops, "known");
  std::unordered_map<ir::ValueId, ir::ValueId> copy;
  for (const ir::NodeId id : nodes) {
    const ir::Node& node = graph.nodes[id];
    std::vector<ir::ValueId> inputs;
    for (const ir::ValueId in : node.inputs) {
      if (!copy.contains(in)) {
        PYC_ASSIGN(copy[in], builder.constant(graph.type(in), graph.value(in).constant));
      }
      inputs.push_back(copy[in]);
    }
    PYC_ASSIGN(ir::ValueId out,
               builder.op(node.op->name, std::move(inputs), node.attrs, "", node.loc));
    for (const ir::ValueId v : node.outputs) copy[v] = out++;
  }
  PYC_TRY(builder.output(copy[value]));
  return std::move(builder).take();
}

}  // namespace

bool ConstantFinder::derived(const ir::Graph& graph, ir::ValueId value) {
  // Values are in topological order and ids of producers are smaller: no deep recursion is needed
  // when ids are visited ascending, but chains are short in practice, so a stack suffices.
  std::vector<ir::ValueId> stack{value};
  while (!stack.empty()) {
    const ir::ValueId v = stack.back();
    if (derived_.contains(v)) {
      stack.pop_back();
      continue;
    }
    const ir::Value& info = graph.value(v);
    if (info.kind != ir::ValueKind::kResult) {
      derived_[v] = info.kind == ir::ValueKind::kConstant;
      stack.pop_back();
      continue;
    }
    bool all = true;
    bool ready = true;
    for (const ir::ValueId in : graph.nodes[info.producer].inputs) {
      const auto it = derived_.find(in);
      if (it == derived_.end()) {
        ready = false;
        stack.push_back(in);
      } else {
        all = all && it->second;
      }
    }
    if (ready) {
      derived_[v] = all;
      stack.pop_back();
    }
  }
  return derived_[value];
}

std::shared_ptr<const ir::ConstData> ConstantFinder::find(const ir::Graph& graph,
                                                          ir::ValueId value) {
  if (graph.value(value).kind == ir::ValueKind::kConstant) return graph.value(value).constant;
  if (!derived(graph, value)) return nullptr;
  const auto it = found_.find(value);
  if (it != found_.end()) return it->second;
  std::shared_ptr<const ir::ConstData>& data = found_[value];
  const auto nodes = producers(graph, value, total_);
  if (!nodes) return nullptr;
  auto part = extract(graph, *nodes, value, ops_);
  if (!part.ok()) return nullptr;
  auto computed = evaluate_(std::move(*part));
  if (computed.ok()) data = ir::dense_data((*computed)[0]);
  if (computed.status().code() == Code::kOutOfMemory) refused_ = computed.status();
  return data;
}

}  // namespace pyc::open
