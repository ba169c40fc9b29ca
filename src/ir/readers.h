#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace pyc::ir {

// The nodes that read each value of a graph, ascending, each once.
class Readers {
 public:
  explicit Readers(const Graph& graph) : begin_(graph.values.size() + 1, 0) {
    each(graph, [&](ValueId v, NodeId) { ++begin_[v + 1]; });
    for (size_t v = 1; v < begin_.size(); ++v) begin_[v] += begin_[v - 1];
    nodes_.resize(begin_.back());
    std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
    each(graph, [&](ValueId v, NodeId n) { nodes_[next[v]++] = n; });
  }

  std::span<const NodeId> of(ValueId v) const {
    return std::span(nodes_).subspan(begin_[v], begin_[v + 1] - begin_[v]);
  }

 private:
  template <class F>
  static void each(const Graph& graph, const F& f) {
    std::vector<NodeId> last(graph.values.size(), kNoId);
    for (NodeId n = 0; n < graph.nodes.size(); ++n) {
      for (const ValueId v : graph.nodes[n].inputs) {
        if (last[v] == n) continue;
        last[v] = n;
        f(v, n);
      }
    }
  }

  std::vector<uint32_t> begin_;  // by value, and the end
  std::vector<NodeId> nodes_;
};

}  // namespace pyc::ir
