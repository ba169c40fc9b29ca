#include <algorithm>
#include <utility>

#include "ir/patch.h"

namespace pyc::ir {

// Writes the graph that a patch describes.
class PatchWriter {
 public:
  explicit PatchWriter(Patch& patch) : patch_(patch), old_(patch.graph_) {
    order_nodes();
    find_live();
  }

  // Whether the graph that is written differs. New nodes alone that nothing reads change nothing.
  bool changes() const {
    const std::vector<ValueId>& replaced = patch_.replaced_;
    for (ValueId v = 0; v < old_.values.size(); ++v) {
      if (!live_[v] || replaced[v] != kNoId) return true;
    }
    return false;
  }

  // Takes what stays out of the old graph and the patch: both are spent.
  Graph write() {
    Graph out;
    out.name = std::move(old_.name);
    out.values.reserve(static_cast<size_t>(std::count(live_.begin(), live_.end(), true)));
    out.nodes.reserve(static_cast<size_t>(std::count(kept_.begin(), kept_.end(), true)));
    const std::vector<ValueId> named_after = names();
    std::vector<ValueId> now(live_.size(), kNoId);
    for (ValueId v = 0; v < live_.size(); ++v) {
      if (!live_[v]) continue;
      now[v] = static_cast<ValueId>(out.values.size());
      out.values.push_back(std::move(value(v)));
      if (named_after[v] == kNoId) continue;
      out.values.back().name = std::move(old_.values[named_after[v]].name);
    }
    const auto renumber = [&](std::vector<ValueId>& ids) {
      for (ValueId& v : ids) v = now[patch_.current(v)];
    };
    for (const NodeId n : order_) {
      if (!kept_[n]) continue;
      out.nodes.push_back(std::move(node(n)));
      renumber(out.nodes.back().inputs);
      // A replaced output of a node that has another one is still the node's own.
      for (ValueId& v : out.nodes.back().outputs) {
        v = now[v];
        out.values[v].producer = static_cast<NodeId>(out.nodes.size() - 1);
      }
    }
    out.inputs = std::move(old_.inputs);
    out.outputs = std::move(old_.outputs);
    renumber(out.inputs);
    renumber(out.outputs);
    return out;
  }

 private:
  Value& value(ValueId v) {
    const size_t olds = old_.values.size();
    return v < olds ? old_.values[v] : patch_.values_[v - olds];
  }
  Node& node(NodeId n) {
    const size_t olds = old_.nodes.size();
    return n < olds ? old_.nodes[n] : patch_.nodes_[n - olds];
  }

  // New nodes come before the node they are anchored at, in the order in which they were made.
  void order_nodes() {
    std::vector<NodeId> added(patch_.nodes_.size());
    for (NodeId i = 0; i < added.size(); ++i) added[i] = i;
    std::stable_sort(added.begin(), added.end(),
                     [&](NodeId a, NodeId b) { return patch_.anchors_[a] < patch_.anchors_[b]; });
    const auto count = static_cast<NodeId>(old_.nodes.size());
    size_t next = 0;
    for (NodeId n = 0; n <= count; ++n) {
      while (next < added.size() && patch_.anchors_[added[next]] <= n) {
        order_.push_back(count + added[next++]);
      }
      if (n < count) order_.push_back(n);
    }
  }

  void find_live() {
    live_.assign(old_.values.size() + patch_.values_.size(), false);
    kept_.assign(old_.nodes.size() + patch_.nodes_.size(), false);
    for (const ValueId v : old_.inputs) live_[v] = true;
    for (const ValueId v : old_.outputs) live_[patch_.current(v)] = true;
    for (size_t i = order_.size(); i-- > 0;) {
      const Node& node = patch_.any_node(order_[i]);
      const auto is_live = [&](ValueId v) { return live_[v]; };
      if (std::none_of(node.outputs.begin(), node.outputs.end(), is_live)) continue;
      kept_[order_[i]] = true;
      for (const ValueId v : node.inputs) live_[patch_.current(v)] = true;
      for (const ValueId v : node.outputs) live_[v] = true;
    }
  }

  // For new values, the value of the graph whose name they take: the first one they replace that
  // is gone.
  std::vector<ValueId> names() const {
    std::vector<ValueId> named_after(live_.size(), kNoId);
    for (ValueId old = 0; old < old_.values.size(); ++old) {
      const ValueId v = patch_.current(old);
      if (v < old_.values.size() || live_[old] || named_after[v] != kNoId) continue;
      named_after[v] = old;
    }
    return named_after;
  }

  Patch& patch_;
  Graph& old_;
  std::vector<NodeId> order_;
  std::vector<bool> live_;  // by value
  std::vector<bool> kept_;  // by node
};

Result<bool> Patch::apply() {
  PYC_TRY(status_);
  PatchWriter writer(*this);
  if (!writer.changes()) return false;
  Graph changed = writer.write();
  graph_ = std::move(changed);
  return true;
}

}  // namespace pyc::ir
