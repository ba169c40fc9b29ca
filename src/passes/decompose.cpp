#include <fmt/format.h>

#include <algorithm>
#include <memory_resource>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "passes/passes.h"

namespace pyc::passes {
namespace {

bool is_composite(const ir::Node& node) { return node.op->decompose != nullptr; }

// The nodes and values that a builder made of one node, from the first on.
struct Made {
  size_t values;
  size_t nodes;
};

// Values keep the names they had; what a composite computes on the way is named after its result,
// the `origin` of the new value. `now`: what the values with these names are.
void name_values(ir::Graph& graph, std::vector<std::string> names,
                 const std::vector<ir::ValueId>& now, const std::vector<ir::ValueId>& origin) {
  std::pmr::monotonic_buffer_resource memory;
  std::pmr::unordered_set<std::string_view> taken(&memory);
  taken.reserve(names.size() + graph.values.size());
  for (const std::string& name : names) taken.insert(name);
  std::vector<bool> named(graph.values.size(), false);
  for (ir::ValueId v = 0; v < names.size(); ++v) {
    if (now[v] == ir::kNoId || named[now[v]]) continue;
    graph.values[now[v]].name = names[v];
    named[now[v]] = true;
  }
  std::vector<int> next(names.size(), 0);  // by origin: lower numbers are taken
  for (ir::ValueId v = 0; v < graph.values.size(); ++v) {
    if (named[v]) continue;
    std::string name;
    do {
      name = fmt::format("{}.{}", names[origin[v]], next[origin[v]]++);
    } while (taken.contains(name));
    graph.values[v].name = std::move(name);
    taken.insert(graph.values[v].name);
  }
}

// One round: composites become the ops of their definition, which may be composites again. All
// other nodes stay as they are; no rule is asked about them again.
class Expansion {
 public:
  Expansion(ir::Graph old, const ir::OpSet& ops) : old_(std::move(old)), builder_(ops, values()) {}

  Result<ir::Graph> run() {
    for (ir::Node& node : old_.nodes) {
      made_.push_back({builder_.graph().values.size(), builder_.graph().nodes.size()});
      for (ir::ValueId& v : node.inputs) v = result_[v];
      if (!is_composite(node)) continue;
      if (node.loc.empty()) node.loc = names_[node.outputs[0]];
      PYC_ASSIGN(const std::vector<ir::ValueId> results, node.op->decompose(builder_, node));
      PYC_CHECK(results.size() == node.outputs.size(), "decompose gave another number of outputs");
      for (size_t i = 0; i < results.size(); ++i) result_[node.outputs[i]] = results[i];
    }
    made_.push_back({builder_.graph().values.size(), builder_.graph().nodes.size()});
    return write();
  }

 private:
  // A graph of the old values alone. The builder has no need of their names.
  ir::Graph values() {
    ir::Graph values;
    values.name = old_.name;
    values.values = std::move(old_.values);
    for (ir::Value& value : values.values) names_.push_back(std::exchange(value.name, "old"));
    result_.resize(names_.size());
    std::iota(result_.begin(), result_.end(), 0);
    return values;
  }

  // In the order of the old nodes: inputs and constants, then what each node makes.
  ir::Graph write() {
    made_graph_ = std::move(builder_).take();
    now_.assign(made_graph_.values.size(), ir::kNoId);
    graph_.name = std::move(made_graph_.name);
    graph_.values.reserve(made_graph_.values.size());
    graph_.nodes.reserve(old_.nodes.size() + made_graph_.nodes.size());
    for (const ir::ValueId v : old_.inputs) add_value(v, ir::kNoId);
    for (ir::ValueId v = 0; v < names_.size(); ++v) {
      if (made_graph_.values[v].kind == ir::ValueKind::kConstant) add_value(v, ir::kNoId);
    }
    for (size_t n = 0; n < old_.nodes.size(); ++n) {
      ir::Node& node = old_.nodes[n];
      if (!is_composite(node)) {
        for (const ir::ValueId v : node.outputs) add_value(v, node.outputs[0]);
        add_node(std::move(node));
        continue;
      }
      const auto end = static_cast<ir::ValueId>(made_[n + 1].values);
      for (auto v = static_cast<ir::ValueId>(made_[n].values); v < end; ++v) {
        add_value(v, node.outputs[0]);
      }
      for (size_t m = made_[n].nodes; m < made_[n + 1].nodes; ++m) {
        add_node(std::move(made_graph_.nodes[m]));
      }
    }
    for (const ir::ValueId v : old_.inputs) graph_.inputs.push_back(now_[v]);
    for (const ir::ValueId v : old_.outputs) graph_.outputs.push_back(now_[result_[v]]);
    std::vector<ir::ValueId> named;
    named.reserve(names_.size());
    for (const ir::ValueId v : result_) named.push_back(now_[v]);
    name_values(graph_, std::move(names_), named, origin_);
    return std::move(graph_);
  }

  void add_value(ir::ValueId v, ir::ValueId origin) {
    now_[v] = static_cast<ir::ValueId>(graph_.values.size());
    graph_.values.push_back(std::move(made_graph_.values[v]));
    origin_.push_back(origin);
  }

  void add_node(ir::Node node) {
    for (ir::ValueId& v : node.inputs) v = now_[v];
    for (ir::ValueId& v : node.outputs) {
      v = now_[v];
      graph_.values[v].producer = static_cast<ir::NodeId>(graph_.nodes.size());
    }
    graph_.nodes.push_back(std::move(node));
  }

  ir::Graph old_;                    // but for its values, which the builder has
  std::vector<std::string> names_;   // of the old values
  std::vector<ir::ValueId> result_;  // by old value: what takes its place in the builder
  ir::GraphBuilder builder_;         // the old values, then what composites are made of
  std::vector<Made> made_;           // by old node, and the end
  ir::Graph made_graph_;             // what was built
  std::vector<ir::ValueId> now_;     // by value there: its place in `graph_`
  ir::Graph graph_;
  std::vector<ir::ValueId> origin_;  // by value of `graph_`: the old one it is named after
};

}  // namespace

Result<bool> decompose(ir::Graph& graph, const PassContext& context) {
  bool changed = false;
  while (std::any_of(graph.nodes.begin(), graph.nodes.end(), is_composite)) {
    for (const ir::Node& node : graph.nodes) {
      if (is_composite(node)) context.count(node.op->name);
    }
    PYC_ASSIGN(graph, Expansion(std::move(graph), context.ops).run());
    changed = true;
  }
  return changed;
}

}  // namespace pyc::passes
