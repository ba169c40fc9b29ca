#include "lower/alike.h"

#include <algorithm>
#include <memory>

#include "base/hash.h"
#include "lower/same.h"

namespace pyc::lower {
namespace {

// Pairs what two groups are made of, from their members up to what they load.
class Pairing {
 public:
  Pairing(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& first,
          const GroupPlan& second)
      : graph_(graph),
        grouping_(grouping),
        same_(graph, grouping.inlined, grouping.layouts, grouping.orders),
        first_(first),
        second_(second) {}

  // Whether they are alike.
  bool find() {
    if (first_.shape != second_.shape || first_.lane_reduction != second_.lane_reduction ||
        first_.elements != second_.elements || first_.rows != second_.rows ||
        first_.cols != second_.cols || first_.members.size() != second_.members.size()) {
      return false;
    }
    for (size_t i = 0; i < first_.members.size(); ++i) {
      if (!pair_members(first_.members[i], second_.members[i])) return false;
    }
    for (size_t i = 0; i < first_.members.size(); ++i) {
      if (!pair_producers(first_.members[i].value, second_.members[i].value)) return false;
    }
    return true;
  }

  // What stands in the second group where `value` does in the first.
  ir::ValueId other(ir::ValueId value) const {
    const auto it = std::ranges::find(values_, value, &Values::first);
    PYC_CHECK(it != values_.end(), "a buffer of a value that its group does not have");
    return it->second;
  }

  // The nodes of the second group, ascending.
  std::vector<ir::NodeId> nodes() const {
    std::vector<ir::NodeId> out;
    out.reserve(nodes_.size());
    for (const auto& [a, b] : nodes_) out.push_back(b);
    std::ranges::sort(out);
    return out;
  }

 private:
  using Values = std::pair<ir::ValueId, ir::ValueId>;
  using Nodes = std::pair<ir::NodeId, ir::NodeId>;

  // As one of `pairs`, which has each side once; whether that can be. `is_new`: it was not there.
  template <class Pair>
  static bool add(std::vector<Pair>& pairs, Pair pair, bool& is_new) {
    for (const Pair& known : pairs) {
      if (known.first != pair.first && known.second != pair.second) continue;
      is_new = false;
      return known == pair;
    }
    pairs.push_back(pair);
    is_new = true;
    return true;
  }

  bool pair_members(const Member& a, const Member& b) {
    return a.per_row == b.per_row && a.reduces == b.reduces && a.level == b.level &&
           grouping_.stored[a.value] == grouping_.stored[b.value] &&
           (grouping_.forwarded_output[a.value] >= 0) ==
               (grouping_.forwarded_output[b.value] >= 0) &&
           pair_values(a.value, b.value);
  }

  bool pair_values(ir::ValueId a, ir::ValueId b) {
    bool is_new = false;
    return add(values_, {a, b}, is_new) && (!is_new || same_value(a, b));
  }

  bool same_value(ir::ValueId a, ir::ValueId b) const {
    return graph_.value(a).kind == graph_.value(b).kind && same_.values(a, b);
  }

  bool pair_producers(ir::ValueId a, ir::ValueId b) {
    return pair_nodes(graph_.value(a).producer, graph_.value(b).producer);
  }

  bool pair_nodes(ir::NodeId a, ir::NodeId b) {
    bool is_new = false;
    if (!add(nodes_, {a, b}, is_new)) return false;
    if (!is_new) return true;
    if (!same_.nodes(a, b)) return false;
    const ir::Node& x = graph_.nodes[a];
    const ir::Node& y = graph_.nodes[b];
    for (size_t i = 0; i < x.outputs.size(); ++i) {
      if (!pair_values(x.outputs[i], y.outputs[i])) return false;
    }
    for (size_t i = 0; i < x.inputs.size(); ++i) {
      if (!pair_input(x.inputs[i], y.inputs[i])) return false;
    }
    return true;
  }

  bool pair_input(ir::ValueId a, ir::ValueId b) {
    if (!pair_values(a, b) || (first_.find(a) == nullptr) != (second_.find(b) == nullptr)) {
      return false;
    }
    if (grouping_.inlined[a]) return pair_producers(a, b);
    return loads(first_, a) == loads(second_, b);
  }

  bool loads(const GroupPlan& plan, ir::ValueId v) const {
    return std::ranges::any_of(
        plan.members, [&](const Member& m) { return grouping_.reads[m.value].contains(v); });
  }

  const ir::Graph& graph_;
  const Grouping& grouping_;
  const Same same_;
  const GroupPlan& first_;
  const GroupPlan& second_;
  // Few: they are looked through from the first to the last.
  std::vector<Values> values_;
  std::vector<Nodes> nodes_;
};

// Equal for groups that are alike.
uint64_t hash_of(const ir::Graph& graph, const GroupPlan& plan) {
  uint64_t hash = mix(static_cast<uint64_t>(plan.shape), static_cast<uint64_t>(plan.elements));
  for (const Member& m : plan.members) {
    const ir::Value& value = graph.value(m.value);
    const auto op = reinterpret_cast<uintptr_t>(graph.nodes[value.producer].op);
    hash = mix(hash, static_cast<uint64_t>(op));
    for (const int64_t d : value.type.shape) hash = mix(hash, static_cast<uint64_t>(d));
  }
  return hash;
}

void name_buffers(const ir::Graph& graph, std::span<const ir::ValueId> values,
                  loop::Kernel& kernel) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != ir::kNoId) kernel.buffers[i].name = graph.value(values[i]).name;
  }
}

}  // namespace

std::optional<BuiltGroups::Made> BuiltGroups::find(const GroupPlan& plan) const {
  const auto [begin, end] = offered_.equal_range(hash_of(graph_, plan));
  for (auto it = begin; it != end; ++it) {
    Pairing pairing(graph_, grouping_, *it->second.plan, plan);
    if (!pairing.find()) continue;
    Made made{.group = built_[it->second.group], .why_not = it->second.why_not};
    Group& group = made.group;
    for (ir::ValueId& v : group.buffer_values) {
      if (v != ir::kNoId) v = pairing.other(v);
    }
    name_buffers(graph_, group.buffer_values, group.kernel);
    if (group.contraction && group.contraction->kernel != nullptr) {
      auto cut = std::make_shared<loop::Kernel>(*group.contraction->kernel);
      name_buffers(graph_, group.buffer_values, *cut);
      group.contraction->kernel = std::move(cut);
    }
    group.members = pairing.nodes();
    group.reasons.clear();
    for (const ir::NodeId n : group.members) {
      group.reasons.push_back(grouping_.reasons[graph_.nodes[n].outputs[0]]);
    }
    return made;
  }
  return std::nullopt;
}

void BuiltGroups::offer(const GroupPlan& plan, std::string why_not) {
  offered_.emplace(hash_of(graph_, plan), Offered{&plan, built_.size() - 1, std::move(why_not)});
}

}  // namespace pyc::lower
