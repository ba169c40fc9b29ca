#include <algorithm>
#include <map>

#include "ir/patch.h"
#include "passes/passes.h"

namespace pyc::passes {
namespace {

using ir::kNoId;
using ir::NodeId;
using ir::NodeView;
using ir::ValueId;

constexpr std::string_view kWidenHalfChains = "widen_half_chains";

// What a node can be in a chain of half values.
enum class Link : uint8_t {
  kNone,
  kProduct,   // begins one: its operands are halves, its sum is f32
  kComputes,  // one element from the elements at its index
  kMoves,     // elements as they are, elsewhere
};

bool names_dtype(const ir::Node& node) {
  return std::any_of(node.attrs.begin(), node.attrs.end(), [](const auto& attr) {
    return ir::kind_of(attr.second) == ir::AttrKind::kDType;
  });
}

// An op that names a type, such as a cast, would not follow its operands; a product that does is
// wide already.
Link link_of(const ir::Graph& graph, const ir::Node& node) {
  const ir::Traits& traits = node.op->traits;
  const DType t = graph.type(node.outputs[0]).dtype;
  if (!is_half(t) || names_dtype(node)) return Link::kNone;
  if (traits.product) return Link::kProduct;
  const auto all_inputs = [&](auto accepts) {
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId v) { return accepts(graph.type(v).dtype); });
  };
  if (traits.moves_data) {
    // Indices may be among them.
    return all_inputs([&](DType in) { return in == t || !is_float(in); }) ? Link::kMoves
                                                                          : Link::kNone;
  }
  if (!traits.elementwise || node.outputs.size() != 1) return Link::kNone;
  return all_inputs([&](DType in) { return in == t || in == DType::kBool; }) ? Link::kComputes
                                                                             : Link::kNone;
}

// By value: the only node that reads it; kNoId where several do, none does or it is an output.
std::vector<NodeId> only_readers(const ir::Graph& graph) {
  std::vector<NodeId> reader(graph.values.size(), kNoId);
  std::vector<bool> several(graph.values.size(), false);
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId v : graph.nodes[n].inputs) {
      several[v] = several[v] || (reader[v] != kNoId && reader[v] != n);
      reader[v] = n;
    }
  }
  for (const ValueId v : graph.outputs) several[v] = true;
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    if (several[v]) reader[v] = kNoId;
  }
  return reader;
}

class Widener {
 public:
  Widener(ir::Graph& graph, const PassContext& context)
      : graph_(graph), patch_(graph, context.ops), context_(context) {
    for (const ir::Node& node : graph.nodes) link_.push_back(link_of(graph, node));
    find_open();
  }

  Result<bool> run() {
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      if (link_[n] == Link::kNone) continue;
      if (any_open(node.inputs) || any_open(node.outputs)) widen(n);
    }
    return patch_.apply();
  }

 private:
  // A value stays in f32 when a link made it in f32 and its only reader computes with it, at once
  // or behind what only moves it. Movement before the first and behind the last computation stays
  // in halves: rounding there gives the same bits and moves half the bytes.
  void find_open() {
    const std::vector<NodeId> reader = only_readers(graph_);
    std::vector<bool> wanted(graph_.values.size(), false);
    for (NodeId n = static_cast<NodeId>(graph_.nodes.size()); n-- > 0;) {
      for (const ValueId v : graph_.nodes[n].outputs) {
        if (reader[v] == kNoId) continue;
        const auto& further = graph_.nodes[reader[v]].outputs;
        wanted[v] =
            link_[reader[v]] == Link::kComputes ||
            (link_[reader[v]] == Link::kMoves &&
             std::any_of(further.begin(), further.end(), [&](ValueId out) { return wanted[out]; }));
      }
    }
    open_.assign(graph_.values.size(), false);
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      const bool wide = link_[n] == Link::kProduct || link_[n] == Link::kComputes ||
                        (link_[n] == Link::kMoves && any_open(node.inputs));
      if (!wide) continue;
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (widens(n, i)) open_[node.outputs[i]] = wanted[node.outputs[i]];
      }
    }
  }

  // Whether output i of a link is f32 when the link is computed in f32.
  bool widens(NodeId n, size_t i) const {
    return (i == 0 || link_[n] != Link::kProduct) &&
           is_half(graph_.type(graph_.nodes[n].outputs[i]).dtype);
  }

  bool any_open(const std::vector<ValueId>& values) const {
    return std::any_of(values.begin(), values.end(), [&](ValueId v) { return open_[v]; });
  }

  void widen(NodeId n) {
    const NodeView node = patch_.node(n);
    patch_.at(n);
    ir::Attrs attrs = node.attrs();
    std::vector<ValueId> inputs;
    if (link_[n] == Link::kProduct) {
      attrs["to"] = DType::kF32;
      inputs = node.all_inputs();
    } else {
      for (const ValueId v : graph_.nodes[n].inputs) inputs.push_back(wide(v));
    }
    const ValueId first = patch_.op(node.op().name, std::move(inputs), std::move(attrs));
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      const ValueId made = first + static_cast<ValueId>(i);
      if (widens(n, i)) {
        finish(node.outputs()[i], made);
      } else {
        patch_.replace(node.outputs()[i], made);
      }
    }
  }

  // Rounds `made`, the f32 of `out`, unless the chain goes on.
  void finish(ValueId out, ValueId made) {
    if (open_[out]) {
      wide_[out] = made;
      return;
    }
    const ir::TensorType& type = graph_.type(out);
    patch_.replace(out, patch_.op("cast", {made}, {{"to", type.dtype}}));
    context_.count("chain_end");
    context_.decide(kWidenHalfChains, graph_.value(out).name, "computed in f32 and rounded once",
                    "value_changing", type.to_string());
  }

  // The f32 of a half value: not rounded when it comes from the chain.
  ValueId wide(ValueId v) {
    if (!is_half(graph_.type(v).dtype)) return v;
    if (const auto found = wide_.find(v); found != wide_.end()) return found->second;
    return wide_[v] = patch_.op("cast", {v}, {{"to", DType::kF32}});
  }

  ir::Graph& graph_;
  ir::Patch patch_;
  const PassContext& context_;
  std::vector<Link> link_;  // by node
  std::vector<bool> open_;  // by value: kept in f32
  std::map<ValueId, ValueId> wide_;
};

}  // namespace

Result<bool> widen_half_chains(ir::Graph& graph, const PassContext& context) {
  return Widener(graph, context).run();
}

}  // namespace pyc::passes
