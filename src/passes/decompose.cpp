#include <fmt/format.h>

#include <algorithm>
#include <memory_resource>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "passes/passes.h"

namespace pyc::passes {
namespace {

bool is_composite(const ir::Node& node) { return node.op->decompose != nullptr; }

// Values keep the names they had; what a composite computes on the way is named after its result,
// the `origin` of the new value.
void name_values(ir::Graph& graph, const ir::Graph& old, const std::vector<ir::ValueId>& now,
                 const std::vector<ir::ValueId>& origin) {
  std::pmr::monotonic_buffer_resource memory;
  std::pmr::unordered_set<std::string_view> taken(&memory);
  taken.reserve(old.values.size() + graph.values.size());
  for (const ir::Value& value : old.values) taken.insert(value.name);
  std::vector<bool> named(graph.values.size(), false);
  for (ir::ValueId v = 0; v < old.values.size(); ++v) {
    if (now[v] == ir::kNoId || named[now[v]]) continue;
    graph.values[now[v]].name = old.value(v).name;
    named[now[v]] = true;
  }
  std::vector<int> next(old.values.size(), 0);  // by origin: lower numbers are taken
  for (ir::ValueId v = 0; v < graph.values.size(); ++v) {
    if (named[v]) continue;
    std::string name;
    do {
      name = fmt::format("{}.{}", old.value(origin[v]).name, next[origin[v]]++);
    } while (taken.contains(name));
    graph.values[v].name = std::move(name);
    taken.insert(graph.values[v].name);
  }
}

// One round: composites become the ops of their definition, which may be composites again. Nodes
// are taken out of the old graph.
Result<ir::Graph> expand(ir::Graph old, const ir::OpSet& ops) {
  ir::GraphBuilder builder(ops, old.name);
  std::vector<ir::ValueId> now(old.values.size(), ir::kNoId);
  for (ir::ValueId v : old.inputs) {
    PYC_ASSIGN(now[v], builder.input(old.value(v).name, old.type(v)));
  }
  for (ir::ValueId v = 0; v < old.values.size(); ++v) {
    const ir::Value& value = old.value(v);
    if (value.kind != ir::ValueKind::kConstant) continue;
    PYC_ASSIGN(now[v], builder.constant(value.type, value.constant));
  }
  std::vector<ir::ValueId> origin(builder.graph().values.size(), ir::kNoId);  // by new value
  for (ir::Node& node : old.nodes) {
    for (ir::ValueId& v : node.inputs) v = now[v];
    if (is_composite(node)) {
      if (node.loc.empty()) node.loc = old.value(node.outputs[0]).name;
      PYC_ASSIGN(const std::vector<ir::ValueId> results, node.op->decompose(builder, node));
      PYC_CHECK(results.size() == node.outputs.size(), "decompose gave another number of outputs");
      for (size_t i = 0; i < results.size(); ++i) now[node.outputs[i]] = results[i];
    } else {
      PYC_ASSIGN(const ir::ValueId first,
                 builder.op(node.op->name, std::move(node.inputs), std::move(node.attrs), "",
                            std::move(node.loc)));
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        now[node.outputs[i]] = first + static_cast<ir::ValueId>(i);
      }
    }
    origin.resize(builder.graph().values.size(), node.outputs[0]);
  }
  for (ir::ValueId v : old.outputs) PYC_TRY(builder.output(now[v]));
  ir::Graph graph = std::move(builder).take();
  name_values(graph, old, now, origin);
  return graph;
}

}  // namespace

Result<bool> decompose(ir::Graph& graph, const PassContext& context) {
  bool changed = false;
  while (std::any_of(graph.nodes.begin(), graph.nodes.end(), is_composite)) {
    for (const ir::Node& node : graph.nodes) {
      if (is_composite(node)) context.count(node.op->name);
    }
    PYC_ASSIGN(graph, expand(std::move(graph), context.ops));
    changed = true;
  }
  return changed;
}

}  // namespace pyc::passes
