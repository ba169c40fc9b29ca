#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "ir/check.h"
#include "ir/graph.h"
#include "ir/literal.h"
#include "ir/rules.h"

// Nothing in the graph is trusted: an id is used as an index only after it was compared with the
// size. Checks run in a fixed order, so that a graph with several faults is always refused for the
// same one.

namespace pyc::ir {
namespace {

Status refuse(std::string_view reason, std::string_view where, std::string_view detail) {
  return {Code::kVerifyFailed, fmt::format("[{}] {}: {}", reason, where, detail)};
}

// Equal for what is equal; only integers are looked at.
uint64_t hash_of_attr(const Attr& attr) {
  uint64_t hash = attr.index();
  if (const auto* number = std::get_if<int64_t>(&attr)) {
    return mix(hash, static_cast<uint64_t>(*number));
  }
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&attr)) {
    for (const int64_t n : *numbers) hash = mix(hash, static_cast<uint64_t>(n));
  }
  return hash;
}

class Verifier {
 public:
  Verifier(const Graph& graph, const VerifiedGraph* before) : graph_(graph) {
    if (before == nullptr) return;
    for (const Value& value : (*before)->values) {
      if (value.constant != nullptr) known_.emplace_back(value.constant.get(), value.type.dtype);
    }
    std::sort(known_.begin(), known_.end(), std::less<>());
  }

  Status run() {
    PYC_TRY(check_counts());
    PYC_TRY(check_values());
    PYC_TRY(check_inputs());
    PYC_TRY(find_producers());
    PYC_TRY(check_producers());
    for (NodeId i = 0; i < graph_.nodes.size(); ++i) {
      PYC_TRY(check_node(i).with_node(first_output(i)));
    }
    return check_outputs();
  }

  Status run_structure() {
    PYC_TRY(check_counts());
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      PYC_TRY(check_kind(id));
      const Value& value = graph_.values[id];
      if (value.kind == ValueKind::kConstant && value.constant == nullptr) {
        return refuse("bad_constant", value_text(id), "it has no data");
      }
    }
    PYC_TRY(check_inputs());
    PYC_TRY(find_producers());
    PYC_TRY(check_producers());
    for (NodeId i = 0; i < graph_.nodes.size(); ++i) PYC_TRY(check_reads(i));
    return check_outputs();
  }

 private:
  Status check_counts() const {
    if (graph_.outputs.empty()) {
      return refuse("empty_graph", "graph", "expected at least one output, found none");
    }
    if (graph_.values.size() >= kNoId || graph_.nodes.size() >= kNoId) {
      return refuse("too_large", "graph", "more values or nodes than there are ids");
    }
    return {};
  }

  bool in_range(ValueId id) const { return id < graph_.values.size(); }

  std::string value_text(ValueId id) const {
    return in_range(id) ? "%" + shown_name(graph_.values[id].name) : fmt::format("value {}", id);
  }

  std::string_view first_output(NodeId i) const {
    const Node& node = graph_.nodes[i];
    if (node.outputs.empty() || !in_range(node.outputs[0])) return "";
    return graph_.values[node.outputs[0]].name;
  }

  std::string node_text(NodeId i) const {
    const Node& node = graph_.nodes[i];
    const std::string result = node.outputs.empty() ? "()" : value_text(node.outputs[0]);
    const std::string loc = node.loc.empty() ? "" : fmt::format(", from {}", shown_name(node.loc));
    return fmt::format("node {} ({} = {}{})", i, result,
                       node.op != nullptr ? node.op->name : "no op", loc);
  }

  Status bad_id(std::string_view where, ValueId id) const {
    return refuse("bad_id", where,
                  fmt::format("expected a value id under {}, found {}", graph_.values.size(), id));
  }

  Status check_values() const {
    const bool distinct = names_are_distinct();
    std::set<std::string_view> names;  // so far; only where two are the same
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      const Value& value = graph_.values[id];
      if (value.name.empty()) {
        return refuse("bad_name", fmt::format("value {}", id), "it has no name");
      }
      if (!distinct && !names.insert(value.name).second) {
        return refuse("duplicate_name", value_text(id), "two values have this name");
      }
      const Status type = check_type(value.type);
      if (!type.ok()) return placed(type, Code::kVerifyFailed, value_text(id));
      PYC_TRY(check_kind(id));
      PYC_TRY(check_data(id));
    }
    return {};
  }

  bool names_are_distinct() const {
    const size_t slots = std::bit_ceil(2 * graph_.values.size() + 1);
    std::vector<ValueId> table(slots, kNoId);  // values by the hash of their names
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      const std::string& name = graph_.values[id].name;
      size_t at = NameHash()(name) & (slots - 1);
      for (; table[at] != kNoId; at = (at + 1) & (slots - 1)) {
        if (graph_.values[table[at]].name == name) return false;
      }
      table[at] = id;
    }
    return true;
  }

  // That a value has what its kind calls for and nothing else.
  Status check_kind(ValueId id) const {
    const Value& value = graph_.values[id];
    switch (value.kind) {
      case ValueKind::kInput:
      case ValueKind::kConstant:
        if (value.producer != kNoId) {
          return refuse(
              "bad_producer", value_text(id),
              fmt::format("an input or constant is said to be made by node {}", value.producer));
        }
        break;
      case ValueKind::kResult:
        break;
      default:
        return refuse("bad_kind", value_text(id),
                      fmt::format("kind number {} is unknown", static_cast<int>(value.kind)));
    }
    if (value.kind == ValueKind::kConstant || value.constant == nullptr) return {};
    return refuse("bad_constant", value_text(id), "it has data but is no constant");
  }

  // That a constant has the data its type calls for.
  Status check_data(ValueId id) const {
    const Value& value = graph_.values[id];
    if (value.kind != ValueKind::kConstant) return {};
    // What was checked depends on the dtype and the size alone.
    const Known known{value.constant.get(), value.type.dtype};
    if (std::binary_search(known_.begin(), known_.end(), known, std::less<>()) &&
        value.constant->bytes.size() == static_cast<uint64_t>(value.type.bytes())) {
      return {};
    }
    const Status data = check_constant(value.type, value.constant.get());
    return data.ok() ? Status() : placed(data, Code::kVerifyFailed, value_text(id));
  }

  Status check_inputs() const {
    std::vector<bool> listed(graph_.values.size());
    for (const ValueId id : graph_.inputs) {
      if (!in_range(id)) return bad_id("graph inputs", id);
      if (graph_.values[id].kind != ValueKind::kInput) {
        return refuse("bad_input", value_text(id), "it is listed as an input but is not one");
      }
      if (listed[id]) return refuse("bad_input", value_text(id), "it is listed twice as an input");
      listed[id] = true;
    }
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      if (graph_.values[id].kind == ValueKind::kInput && !listed[id]) {
        return refuse("bad_input", value_text(id), "it is an input but is not listed as one");
      }
    }
    return {};
  }

  Status find_producers() {
    makers_.assign(graph_.values.size(), kNoId);
    for (NodeId i = 0; i < graph_.nodes.size(); ++i) {
      for (const ValueId id : graph_.nodes[i].outputs) {
        if (!in_range(id)) return bad_id(node_text(i), id);
        if (graph_.values[id].kind != ValueKind::kResult) {
          return refuse("multiple_producers", node_text(i),
                        fmt::format("it makes {}, an input or constant", value_text(id)));
        }
        if (makers_[id] != kNoId) {
          return refuse(
              "multiple_producers", node_text(i),
              fmt::format("it makes {}, which node {} makes too", value_text(id), makers_[id]));
        }
        makers_[id] = i;
      }
    }
    return {};
  }

  Status check_producers() const {
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      const Value& value = graph_.values[id];
      if (value.kind != ValueKind::kResult) continue;
      if (makers_[id] == kNoId) {
        return refuse("undefined_value", value_text(id), "no node makes it");
      }
      if (makers_[id] != value.producer) {
        return refuse(
            "bad_producer", value_text(id),
            fmt::format("it is made by node {}, but says node {}", makers_[id], value.producer));
      }
    }
    return {};
  }

  Status check_reads(NodeId i) const {
    const Node& node = graph_.nodes[i];
    if (node.op == nullptr || node.op->infer == nullptr) {
      return refuse("bad_op", node_text(i), "it has no op, or one without a type rule");
    }
    for (const ValueId id : node.inputs) {
      if (!in_range(id)) return bad_id(node_text(i), id);
      if (graph_.values[id].kind == ValueKind::kResult && makers_[id] >= i) {
        return refuse("forward_reference", node_text(i),
                      fmt::format("it reads {}, which node {} makes only then or later",
                                  value_text(id), makers_[id]));
      }
    }
    return {};
  }

  Status check_node(NodeId i) {
    PYC_TRY(check_reads(i));
    const Node& node = graph_.nodes[i];
    NodeId& first = first_like(i);
    if (first != kNoId && same_types(graph_.nodes[first].outputs, node.outputs)) return {};
    Status status = check_arity(*node.op, node.inputs.size());
    if (status.ok()) status = check_attrs(*node.op, node.attrs);
    if (!status.ok()) return placed(status, Code::kVerifyFailed, node_text(i));
    PYC_TRY(check_node_types(i));
    first = i;
    return {};
  }

  // The node before i that its op's rules cannot tell from i: they see attributes and the types of
  // inputs. Where it is to be written if there is none, it is kNoId.
  NodeId& first_like(NodeId i) {
    if (checked_.empty()) checked_.assign(std::bit_ceil(2 * graph_.nodes.size() + 1), kNoId);
    const size_t last = checked_.size() - 1;
    size_t at = hash_of(graph_.nodes[i]) & last;
    while (checked_[at] != kNoId && !are_alike(graph_.nodes[checked_[at]], graph_.nodes[i])) {
      at = (at + 1) & last;
    }
    return checked_[at];
  }

  // Equal for nodes that are alike.
  uint64_t hash_of(const Node& node) const {
    uint64_t hash = mix(node.attrs.size(), reinterpret_cast<uintptr_t>(node.op));
    for (const auto& [name, attr] : node.attrs) hash = mix(hash, hash_of_attr(attr));
    for (const ValueId v : node.inputs) {
      const TensorType& type = graph_.values[v].type;
      hash = mix(hash, static_cast<uint64_t>(type.dtype));
      for (const int64_t d : type.shape) hash = mix(hash, static_cast<uint64_t>(d));
    }
    return hash;
  }

  bool are_alike(const Node& a, const Node& b) const {
    return a.op == b.op && same_types(a.inputs, b.inputs) && same_attrs(a.attrs, b.attrs);
  }

  bool same_types(std::span<const ValueId> a, std::span<const ValueId> b) const {
    return std::ranges::equal(
        a, b, [&](ValueId x, ValueId y) { return graph_.values[x].type == graph_.values[y].type; });
  }

  Status check_node_types(NodeId i) {
    const Node& node = graph_.nodes[i];
    const size_t count = node.inputs.size();
    if (inputs_.size() < count) inputs_.resize(count);
    for (size_t k = 0; k < count; ++k) inputs_[k] = graph_.values[node.inputs[k]].type;
    auto types = infer_outputs(*node.op, std::span(inputs_).first(count), node.attrs);
    if (!types.ok()) {
      const Status& status = types.status();
      if (status.message().starts_with('['))
        return placed(status, Code::kVerifyFailed, node_text(i));
      return {status.code(), fmt::format("[type_rule] {}: {}", node_text(i), status.message())};
    }
    return check_output_types(i, *types);
  }

  // That the outputs have the types that the op's rule gives.
  Status check_output_types(NodeId i, std::span<const TensorType> types) const {
    const Node& node = graph_.nodes[i];
    if (node.outputs.size() != types.size()) {
      return refuse(
          "bad_output_count", node_text(i),
          fmt::format("expected {} outputs, found {}", types.size(), node.outputs.size()));
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const TensorType& recorded = graph_.values[node.outputs[k]].type;
      if (recorded != types[k]) {
        return refuse("type_mismatch", node_text(i),
                      fmt::format("expected {} for {}, found {}", types[k].to_string(),
                                  value_text(node.outputs[k]), recorded.to_string()));
      }
    }
    return {};
  }

  Status check_outputs() const {
    for (const ValueId id : graph_.outputs) {
      if (in_range(id)) continue;
      return refuse(
          "bad_output", "graph outputs",
          fmt::format("expected a value id under {}, found {}", graph_.values.size(), id));
    }
    return {};
  }

  const Graph& graph_;
  using Known = std::pair<const ConstData*, DType>;
  std::vector<Known> known_;        // constants that were checked before, in order
  std::vector<TensorType> inputs_;  // of the node looked at, and of those before that had more
  std::vector<NodeId> makers_;      // by value id: the node that has it among its outputs
  std::vector<NodeId> checked_;     // nodes in order, no two alike, by their hash; kNoId: free
};

}  // namespace

Status check_graph(const Graph& graph, const VerifiedGraph* before) {
  return Verifier(graph, before).run();
}

Status check_structure(const Graph& graph) { return Verifier(graph, nullptr).run_structure(); }

Result<VerifiedGraph> verify_graph(Graph graph, const VerifiedGraph* before) {
  PYC_TRY(check_graph(graph, before));
  return VerifiedGraph(std::make_shared<const Graph>(std::move(graph)));
}

}  // namespace pyc::ir
