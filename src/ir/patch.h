#pragma once

// Rewrites of a graph. A Patch gathers edits, shows the graph as if they were made, and makes them
// all at once. Every edit is checked when it is asked for; the first refusal makes all later edits
// do nothing, and `apply` gives it. Edits can be taken back up to a mark.

#include <deque>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/convert.h"
#include "ir/graph.h"

namespace pyc::ir {

class Patch;

// A node as it is after the edits so far. False when there is none. Valid as long as its patch.
class NodeView {
 public:
  NodeView() = default;
  NodeView(const Patch& patch, const Node& node) : patch_(&patch), node_(&node) {}
  explicit operator bool() const { return node_ != nullptr; }

  const OpDef& op() const { return *node_->op; }
  bool is(std::string_view op) const { return node_ != nullptr && node_->op->name == op; }
  const Attrs& attrs() const { return node_->attrs; }
  const std::string& loc() const { return node_->loc; }
  size_t inputs() const { return node_->inputs.size(); }
  ValueId input(size_t i) const;
  std::vector<ValueId> all_inputs() const;
  const std::vector<ValueId>& outputs() const { return node_->outputs; }
  const TensorType& input_type(size_t i) const;
  const TensorType& type() const;  // of output 0

 private:
  const Patch* patch_ = nullptr;
  const Node* node_ = nullptr;
};

class Patch {
 public:
  // Requires a graph that verify_graph accepts; it changes in `apply` only.
  Patch(Graph& graph, const OpSet& ops)
      : graph_(graph), ops_(ops), replaced_(graph.values.size(), kNoId) {}

  const Graph& graph() const { return graph_; }
  // The graph's node n.
  NodeView node(NodeId n) const { return {*this, graph_.nodes[n]}; }
  // What a reader of `v` gets: `v`, or the value that replaces it.
  ValueId current(ValueId v) const;
  const TensorType& type(ValueId v) const { return value(v).type; }
  // The node that makes what a reader of `v` gets; none for inputs and constants.
  NodeView producer(ValueId v) const;
  // The data a reader of `v` gets if it is a constant, else null.
  const std::shared_ptr<const ConstData>& constant(ValueId v) const;
  // Whether it is a constant whose elements all equal `x` (as an element of its dtype, so that 0.0
  // is not -0.0), or all equal one another; the latter gives the element.
  bool is_uniform(ValueId v, double x) const;
  std::optional<Word> uniform(ValueId v) const;

  // New nodes stand before node n of the graph from now on.
  void at(NodeId n) { anchor_ = n; }
  // A new node; gives its first output, the others follow it. kNoId when it is refused.
  ValueId op(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {});
  ValueId constant(TensorType type, std::shared_ptr<const ConstData> data);
  // Everything that reads `old`, a result or constant of the graph, reads `by` instead, which must
  // have the same type and stand before `old`'s node.
  void replace(ValueId old, ValueId by);

  // For `simplify`: notes that the rule of that name gave `v`, and gives it back. kNoId notes
  // nothing.
  ValueId by(std::string_view rule, ValueId v) {
    if (v != kNoId) rules_.push_back(rule);
    return v;
  }
  // The names noted so far, in order.
  const std::vector<std::string_view>& rules() const { return rules_; }

  bool ok() const { return status_.ok(); }
  size_t edits() const { return log_.size(); }
  // Takes back all edits after the first `count`, a refusal included.
  void undo_to(size_t count);
  // The edits, one a line: "new %t = transpose(%x)", "%y -> %t".
  std::string to_string() const;

  // Makes the edits and leaves out all nodes and constants that no output needs. Gives whether the
  // graph changed. New values that replace another take over its name. The patch is spent.
  Result<bool> apply();

 private:
  enum class EditKind : uint8_t { kNode, kConstant, kReplace };
  struct Edit {
    EditKind kind;
    uint32_t subject;  // the new node or value, or the value that was replaced
  };

  const Value& value(ValueId v) const;
  const Node& any_node(NodeId n) const;
  NodeId known_from(ValueId v) const;
  ValueId refuse(std::string message);
  // Why `by` cannot take the place of `old`, or "".
  std::string refusal(ValueId old, ValueId by) const;
  std::string fresh_name(std::string_view wanted);
  std::string value_text(ValueId v) const;

  friend class PatchWriter;

  Graph& graph_;
  const OpSet& ops_;
  NodeId anchor_ = 0;
  Status status_;
  std::deque<Value> values_;       // new ones, numbered after the graph's
  std::deque<Node> nodes_;         // likewise
  std::vector<NodeId> anchors_;    // of the new nodes
  std::vector<ValueId> replaced_;  // by value of the graph: what took its place, or kNoId
  // By name: numbers under this one are taken for names made of it. The graph and made_names_ hold
  // the names.
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::unordered_map<std::string_view, int> names_{&memory_};
  std::deque<std::string> made_names_;
  std::vector<Edit> log_;
  std::vector<std::string_view> rules_;
};

// Every element is the same; then `element` is it. False for no elements.
bool is_splat(const TensorType& type, const ConstData& data, Word* element);

}  // namespace pyc::ir
