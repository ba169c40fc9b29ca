#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace pyc::ir {

// Nodes whose attributes and types were found right, by all that was asked about them, so that a
// graph that is checked after every change is asked about what is new alone.
class CheckedNodes {
 public:
  // The types of the outputs of a node that is in order; null when nobody knows.
  const std::vector<TensorType>* find(const Node& node, std::span<const Value> values) const;
  // What the op's rules accepted, and the types they gave.
  void keep(const Node& node, std::span<const Value> values, std::vector<TensorType> outputs);

 private:
  struct Checked {
    const OpDef* op;
    Attrs attrs;
    std::vector<TensorType> inputs;
    std::vector<TensorType> outputs;
  };
  std::unordered_multimap<uint64_t, Checked> nodes_;  // asked, never gone through
};

// Whether verify_graph would accept the graph, which stays where it is. Nodes are looked up in
// `nodes` and noted there, unless it is null.
Status check_graph(const Graph& graph, const VerifiedGraph* before = nullptr,
                   CheckedNodes* nodes = nullptr);

}  // namespace pyc::ir
