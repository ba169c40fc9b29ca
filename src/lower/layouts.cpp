// Which values lie channels last. Values of one shape that are computed element by element from one
// another are one variable with two labels. Starting from all channels last, single variables
// change their label as long as that lowers the cost of the nodes around them.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "lower/layout_cost.h"

namespace pyc::lower {
namespace {

constexpr int kMaxPasses = 6;
// Less is within the error of the facts.
constexpr double kLeastGain = 0.97;
// Nodes with more values to label than this are left out: their labels stay row-major.
constexpr size_t kMaxLabelled = 12;

Layout channels_last(size_t rank) {
  Layout order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

// Whether the order of dims matters: channels, and more than one place behind them.
bool has_two_orders(const ir::Shape& shape) {
  if (shape.size() < 3 || shape[1] <= 1) return false;
  int64_t places = 1;
  for (size_t d = 2; d < shape.size(); ++d) places *= shape[d];
  return places > 1;
}

using Variable = ir::ValueId;  // the first value of those that share a label

class Chooser {
 public:
  Chooser(const ir::Graph& graph, const LayoutFacts& facts, bool share)
      : graph_(graph),
        facts_(facts),
        none_(graph.values.size(), false),
        row_major_(graph, none_, no_layouts_, no_orders_, share) {}

  Layouts run(DecisionLog& log) {
    find_free();
    if (!find_products()) return {};
    join_elementwise();
    find_region();
    for (const std::vector<Variable>& component : components()) choose(component, log);
    for (ir::ValueId v = 0; v < graph_.values.size(); ++v) {
      if (free_[v] && last_.contains(variable(v))) out_.set(v, channels_last(rank(v)));
    }
    for (const ir::NodeId n : region_) order_constants(n);
    return std::move(out_);
  }

 private:
  size_t rank(ir::ValueId v) const { return graph_.type(v).shape.size(); }
  Variable variable(ir::ValueId v) const {
    while (joined_[v] != v) v = joined_[v];
    return v;
  }
  Probe probe(ir::NodeId n, size_t output, const Layouts& layouts) const {
    return probe_node(graph_, n, static_cast<int>(output), none_, layouts);
  }
  void find_free();
  bool find_products();
  void join_elementwise();
  void find_region();
  std::vector<ir::ValueId> touched(ir::NodeId n) const;
  std::vector<std::vector<Variable>> components() const;
  double cost_with(ir::NodeId n, const Layouts& layouts) const;
  double cost(ir::NodeId n);
  double cost(const std::set<ir::NodeId>& nodes);
  void choose(const std::vector<Variable>& component, DecisionLog& log);
  void order_constants(ir::NodeId n);
  void order_constant(ir::NodeId n, size_t output, const ProbeRead& read);

  const ir::Graph& graph_;
  const LayoutFacts& facts_;
  const std::vector<bool> none_;  // nothing is read through
  const Layouts no_layouts_;
  const Orders no_orders_;
  Probes row_major_;
  std::vector<bool> free_;  // by value: it may have either label
  std::vector<ir::ValueId> joined_;
  std::set<ir::NodeId> multiplies_;                  // nodes that sum products
  std::set<ir::NodeId> products_;                    // that gain where all is channels last
  std::set<ir::NodeId> region_;                      // whose costs count
  std::map<Variable, std::set<ir::NodeId>> around_;  // nodes of the region, by variable
  std::set<Variable> last_;                          // those that are channels last
  std::map<std::pair<ir::NodeId, uint64_t>, double> known_;
  Layouts out_;
};

void Chooser::find_free() {
  free_.assign(graph_.values.size(), false);
  joined_.resize(graph_.values.size());
  std::iota(joined_.begin(), joined_.end(), 0);
  for (ir::ValueId v = 0; v < graph_.values.size(); ++v) {
    free_[v] = graph_.value(v).kind == ir::ValueKind::kResult && may_have_layout(graph_, v) &&
               has_two_orders(graph_.type(v).shape);
  }
  // Ops that write whole kernels count in row-major order.
  for (const ir::Node& node : graph_.nodes) {
    if (node.op->kernel == nullptr) continue;
    for (const ir::ValueId v : node.inputs) free_[v] = false;
    for (const ir::ValueId v : node.outputs) free_[v] = false;
  }
}

std::vector<ir::ValueId> Chooser::touched(ir::NodeId n) const {
  std::vector<ir::ValueId> out;
  for (const auto* list : {&graph_.nodes[n].inputs, &graph_.nodes[n].outputs}) {
    for (const ir::ValueId v : *list) {
      if (free_[v] && std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
    }
  }
  return out;
}

double Chooser::cost_with(ir::NodeId n, const Layouts& layouts) const {
  double sum = 0.0;
  for (size_t o = 0; o < graph_.nodes[n].outputs.size(); ++o) {
    sum += cost_of(graph_, probe(n, o, layouts), facts_);
  }
  return sum;
}

bool Chooser::find_products() {
  for (ir::NodeId n = 0; n < graph_.nodes.size(); ++n) {
    const ir::Node& node = graph_.nodes[n];
    const std::vector<ir::ValueId> values = touched(n);
    if (node.op->kernel != nullptr || values.empty()) continue;
    if (!is_product(row_major_.of(node.outputs[0]))) continue;
    multiplies_.insert(n);
    Layouts all;
    for (const ir::ValueId v : values) all.set(v, channels_last(rank(v)));
    if (cost_with(n, all) < cost_with(n, {})) products_.insert(n);
  }
  return !products_.empty();
}

void Chooser::join_elementwise() {
  for (ir::NodeId n = 0; n < graph_.nodes.size(); ++n) {
    const ir::Node& node = graph_.nodes[n];
    const ir::ValueId out = node.outputs[0];
    if (node.op->kernel != nullptr || node.outputs.size() != 1 || !free_[out]) continue;
    const Probe& p = row_major_.of(out);
    if (!p.pointwise()) continue;
    for (const ProbeRead& r : p.reads) {
      if (!free_[r.value] || r.guarded || r.offset != p.linear) continue;
      if (graph_.type(r.value).shape != graph_.type(out).shape) continue;
      const Variable a = variable(out);
      const Variable b = variable(r.value);
      joined_[std::max(a, b)] = std::min(a, b);
    }
  }
}

// From the products that gain on, all nodes that share a variable, but not beyond a product that
// has nothing to gain.
void Chooser::find_region() {
  std::map<Variable, std::set<ir::NodeId>> users;
  for (ir::NodeId n = 0; n < graph_.nodes.size(); ++n) {
    for (const ir::ValueId v : touched(n)) users[variable(v)].insert(n);
  }
  std::vector<ir::NodeId> open(products_.begin(), products_.end());
  region_ = products_;
  while (!open.empty()) {
    const ir::NodeId n = open.back();
    open.pop_back();
    if (multiplies_.contains(n) && !products_.contains(n)) continue;
    for (const ir::ValueId v : touched(n)) {
      for (const ir::NodeId next : users[variable(v)]) {
        around_[variable(v)].insert(next);
        if (region_.insert(next).second) open.push_back(next);
      }
    }
  }
}

std::vector<std::vector<Variable>> Chooser::components() const {
  std::vector<std::vector<Variable>> out;
  std::set<Variable> seen;
  for (const auto& [first, nodes] : around_) {
    if (!seen.insert(first).second) continue;
    std::vector<Variable> component{first};
    for (size_t i = 0; i < component.size(); ++i) {
      for (const ir::NodeId n : around_.at(component[i])) {
        for (const ir::ValueId v : touched(n)) {
          const Variable next = variable(v);
          if (around_.contains(next) && seen.insert(next).second) component.push_back(next);
        }
      }
    }
    std::sort(component.begin(), component.end());
    out.push_back(std::move(component));
  }
  return out;
}

double Chooser::cost(ir::NodeId n) {
  const std::vector<ir::ValueId> values = touched(n);
  if (values.size() > kMaxLabelled) return 0.0;
  uint64_t labels = 0;
  Layouts layouts;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!last_.contains(variable(values[i]))) continue;
    labels |= uint64_t{1} << i;
    layouts.set(values[i], channels_last(rank(values[i])));
  }
  const auto [it, is_new] = known_.try_emplace({n, labels}, 0.0);
  if (is_new) it->second = cost_with(n, layouts);
  return it->second;
}

double Chooser::cost(const std::set<ir::NodeId>& nodes) {
  double sum = 0.0;
  for (const ir::NodeId n : nodes) sum += cost(n);
  return sum;
}

void Chooser::choose(const std::vector<Variable>& component, DecisionLog& log) {
  std::set<ir::NodeId> nodes;
  for (const Variable v : component) nodes.insert(around_[v].begin(), around_[v].end());
  const double row_major = cost(nodes);
  last_.insert(component.begin(), component.end());
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    bool changed = false;
    for (const Variable v : component) {
      const double before = cost(around_[v]);
      const bool was_last = last_.erase(v) > 0;
      if (!was_last) last_.insert(v);
      if (cost(around_[v]) < before) {
        changed = true;
      } else if (was_last) {
        last_.insert(v);
      } else {
        last_.erase(v);
      }
    }
    if (!changed) break;
  }
  const double found = cost(nodes);
  const bool taken = found < kLeastGain * row_major;
  if (!taken) {
    for (const Variable v : component) last_.erase(v);
  }
  const auto count = std::count_if(component.begin(), component.end(),
                                   [&](Variable v) { return last_.contains(v); });
  log.push_back({.what = "layouts:%" + graph_.value(component[0]).name,
                 .chosen = taken ? "channels last" : "row-major",
                 .reason = taken ? "least_cost" : "too_little_to_gain",
                 .detail = fmt::format("{} of {} sets of values, {} nodes", count, component.size(),
                                       nodes.size()),
                 .alternatives = {{.name = "row-major", .cost_ns = row_major, .rejected = ""},
                                  {.name = "channels last", .cost_ns = found, .rejected = ""}}});
}

// A constant that lanes read one by one is stored so that they lie side by side.
void Chooser::order_constants(ir::NodeId n) {
  const ir::Node& node = graph_.nodes[n];
  if (node.op->kernel != nullptr) return;
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    if (out_.is_row_major(node.outputs[o])) continue;
    const Probe p = probe(n, o, out_);
    const loop::VarId lanes = innermost_var(p);
    if (lanes == loop::kNone || is_tile(p, lanes)) continue;
    for (const ProbeRead& r : p.reads) {
      const bool apart = graph_.value(r.value).kind == ir::ValueKind::kConstant &&
                         may_have_layout(graph_, r.value) && out_.is_row_major(r.value) &&
                         !reads_together(p, r, lanes);
      if (apart) order_constant(n, o, r);
    }
  }
}

void Chooser::order_constant(ir::NodeId n, size_t output, const ProbeRead& read) {
  for (size_t d = 0; d + 1 < rank(read.value); ++d) {
    Layout order(rank(read.value));
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(d),
                order.begin() + static_cast<std::ptrdiff_t>(d) + 1, order.end());
    Layouts tried = out_;
    tried.set(read.value, order);
    const Probe q = probe(n, output, tried);
    const auto same = std::find_if(q.reads.begin(), q.reads.end(),
                                   [&](const ProbeRead& r) { return r.value == read.value; });
    if (same == q.reads.end() || !reads_together(q, *same, innermost_var(q))) continue;
    out_ = std::move(tried);
    return;
  }
}

}  // namespace

Layouts choose_layouts(const ir::Graph& graph, const LayoutFacts& facts, DecisionLog& log,
                       bool probe_alike_once) {
  if (!facts.known()) return {};
  return Chooser(graph, facts, probe_alike_once).run(log);
}

}  // namespace pyc::lower
