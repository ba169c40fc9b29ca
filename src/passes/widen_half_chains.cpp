#include <algorithm>
#include <map>

#include "ir/patch.h"
#include "passes/passes.h"

namespace pyc::passes {
namespace {

using ir::kNoId;
using ir::NodeView;
using ir::ValueId;

constexpr std::string_view kWidenHalfChains = "widen_half_chains";

bool is_half(DType t) { return t == DType::kF16 || t == DType::kBF16; }

// Computes a half result from the same index of half operands; a condition may be among them. An op
// that names a type, such as a cast, would not follow its operands.
bool is_link(const ir::Graph& graph, const ir::Node& node) {
  if (!node.op->traits.elementwise || node.outputs.size() != 1) return false;
  for (const auto& [name, attr] : node.attrs) {
    if (ir::kind_of(attr) == ir::AttrKind::kDType) return false;
  }
  const DType t = graph.type(node.outputs[0]).dtype;
  return is_half(t) && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
           const DType in = graph.type(v).dtype;
           return in == t || in == DType::kBool;
         });
}

class Widener {
 public:
  Widener(ir::Graph& graph, const PassContext& context)
      : graph_(graph), patch_(graph, context.ops), context_(context), in_chain_(find_chains()) {}

  Result<bool> run() {
    for (ir::NodeId n = 0; n < graph_.nodes.size(); ++n) {
      if (in_chain_[n]) widen(n);
    }
    return patch_.apply();
  }

 private:
  // By node: whether it is a link that reads a link or is read by one.
  std::vector<bool> find_chains() const {
    std::vector<bool> link(graph_.nodes.size());
    std::vector<bool> chained(graph_.nodes.size());
    for (ir::NodeId n = 0; n < graph_.nodes.size(); ++n) {
      link[n] = is_link(graph_, graph_.nodes[n]);
      if (!link[n]) continue;
      for (const ValueId v : graph_.nodes[n].inputs) {
        if (graph_.value(v).kind != ir::ValueKind::kResult) continue;
        const ir::NodeId from = graph_.value(v).producer;
        if (!link[from]) continue;
        chained[from] = chained[n] = true;
      }
    }
    return chained;
  }

  void widen(ir::NodeId n) {
    const NodeView node = patch_.node(n);
    const ValueId out = node.outputs()[0];
    patch_.at(n);
    std::vector<ValueId> inputs;
    for (const ValueId v : graph_.nodes[n].inputs) inputs.push_back(wide(v));
    const ValueId result = patch_.op(node.op().name, std::move(inputs), node.attrs());
    wide_[out] = result;
    if (!leaves_chain(out)) return;
    patch_.replace(out, patch_.op("cast", {result}, {{"to", node.type().dtype}}));
    context_.count("chain_end");
    context_.decide(kWidenHalfChains, graph_.value(out).name, "computed in f32 and rounded once",
                    "value_changing", node.type().to_string());
  }

  // The f32 of a half value: not rounded when it comes from the chain.
  ValueId wide(ValueId v) {
    if (!is_half(graph_.type(v).dtype)) return v;
    if (const auto found = wide_.find(v); found != wide_.end()) return found->second;
    return wide_[v] = patch_.op("cast", {v}, {{"to", DType::kF32}});
  }

  bool leaves_chain(ValueId v) {
    if (leaves_.empty()) {
      leaves_.resize(graph_.values.size());
      for (const ValueId output : graph_.outputs) leaves_[output] = true;
      for (ir::NodeId n = 0; n < graph_.nodes.size(); ++n) {
        if (in_chain_[n]) continue;
        for (const ValueId input : graph_.nodes[n].inputs) leaves_[input] = true;
      }
    }
    return leaves_[v];
  }

  ir::Graph& graph_;
  ir::Patch patch_;
  const PassContext& context_;
  std::vector<bool> in_chain_;  // by node
  std::vector<bool> leaves_;    // by value: read outside the chains
  std::map<ValueId, ValueId> wide_;
};

}  // namespace

Result<bool> widen_half_chains(ir::Graph& graph, const PassContext& context) {
  return Widener(graph, context).run();
}

}  // namespace pyc::passes
