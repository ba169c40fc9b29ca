#include "passes/split_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ir/patch.h"

namespace pyc::passes {
namespace {

using ir::kNoId;
using ir::NodeId;
using ir::ValueId;

constexpr int64_t kParts = 4;
// Of a part: fewer would leave a tile of a product half empty.
constexpr int64_t kFewestRows = 8;
// Times the bytes of what comes in and what goes out.
constexpr int64_t kWide = 2;

struct Chain {
  ValueId in = kNoId;   // of the first product
  ValueId out = kNoId;  // of the last node
  int64_t axis = 0;     // of rows
  std::vector<NodeId> nodes = {};
  int64_t widest = 0;  // bytes of the largest value between them
};

class Finder {
 public:
  explicit Finder(const ir::Graph& graph) : graph_(graph), readers_(graph.values.size()) {
    for (NodeId n = 0; n < graph.nodes.size(); ++n) {
      for (const ValueId v : graph.nodes[n].inputs) readers_[v].insert(n);
    }
    outputs_.insert(graph.outputs.begin(), graph.outputs.end());
  }

  // Those that are worth it, none of which has a node of another.
  std::vector<Chain> find() {
    std::vector<Chain> chains;
    NodeId after = 0;
    int64_t widest = 0;
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      if (n < after || !is_product(graph_.nodes[n])) continue;
      std::optional<Chain> chain = from(n);
      if (!chain) continue;
      after = chain->nodes.back() + 1;
      widest = std::max(widest, chain->widest);
      chains.push_back(std::move(*chain));
    }
    std::erase_if(chains, [&](const Chain& c) { return c.widest <= widest / 2; });
    return chains;
  }

 private:
  // Whether it is the same in every run: a constant, or one that is only moved.
  bool is_constant(ValueId v) const {
    while (graph_.value(v).kind == ir::ValueKind::kResult) {
      const ir::Node& node = graph_.nodes[graph_.value(v).producer];
      const bool moves = node.inputs.size() == 1 && node.outputs.size() == 1;
      if (!moves || !node.op->traits.moves_data) return false;
      v = node.inputs[0];
    }
    return graph_.value(v).kind == ir::ValueKind::kConstant;
  }

  bool is_product(const ir::Node& node) const {
    return node.op->name == "matmul" && graph_.type(node.inputs[0]).rank() >= 2 &&
           graph_.type(node.inputs[0]).dtype == DType::kF32 &&
           graph_.type(node.inputs[1]).rank() == 2 && is_constant(node.inputs[1]);
  }

  // The first dim that has rows for every part.
  static std::optional<int64_t> axis_of(const ir::TensorType& type) {
    int64_t inner = 1;
    for (int64_t d = 0; d + 1 < type.rank(); ++d) inner *= type.shape[d];
    for (int64_t d = 0; d + 1 < type.rank(); ++d) {
      if (type.shape[d] == 1) continue;
      const bool divides = type.shape[d] % kParts == 0 && inner / kParts >= kFewestRows;
      return divides ? std::optional<int64_t>(d) : std::nullopt;
    }
    return {};
  }

  // Whether the node's result has the rows of the chain's values, made of theirs alone.
  bool joins(const ir::Node& node, const Chain& chain, const std::set<ValueId>& inside) const {
    const ir::TensorType& in = graph_.type(chain.in);
    const auto has_rows = [&](ValueId v) {
      const ir::TensorType& type = graph_.type(v);
      return type.rank() == in.rank() &&
             std::equal(type.shape.begin(), type.shape.end() - 1, in.shape.begin());
    };
    if (node.outputs.size() != 1 || !has_rows(node.outputs[0])) return false;
    if (is_product(node)) return inside.contains(node.inputs[0]);
    if (!node.op->traits.elementwise) return false;
    return std::ranges::all_of(node.inputs, [&](ValueId v) {
      if (inside.contains(v)) return true;
      const ir::TensorType& type = graph_.type(v);
      const int64_t dim = chain.axis - (in.rank() - type.rank());
      return is_constant(v) && (dim < 0 || type.shape[dim] == 1);
    });
  }

  // Whether nothing but the chain reads what is inside of it, its last value left out.
  bool closed(const std::set<NodeId>& nodes, const std::set<ValueId>& inside, ValueId last) const {
    return std::ranges::all_of(inside, [&](ValueId v) {
      if (v == last) return true;
      return !outputs_.contains(v) &&
             std::ranges::all_of(readers_[v], [&](NodeId n) { return nodes.contains(n); });
    });
  }

  // The chain that begins with a product and has the smallest result.
  std::optional<Chain> from(NodeId first) const {
    const ir::Node& product = graph_.nodes[first];
    Chain chain{.in = product.inputs[0]};
    const std::optional<int64_t> axis = axis_of(graph_.type(chain.in));
    if (!axis) return {};
    chain.axis = *axis;
    std::optional<Chain> best;
    std::set<NodeId> nodes;
    std::set<ValueId> inside;
    int products = 0;
    for (NodeId n = first; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      const bool reads =
          std::ranges::any_of(node.inputs, [&](ValueId v) { return inside.contains(v); });
      if (n != first && !reads) continue;
      if (n != first && !joins(node, chain, inside)) break;
      const ValueId out = node.outputs[0];
      nodes.insert(n);
      inside.insert(out);
      chain.nodes.push_back(n);
      products += is_product(node) ? 1 : 0;
      if (products > 1 && closed(nodes, inside, out) &&
          (!best || graph_.type(out).bytes() < graph_.type(best->out).bytes())) {
        best = chain;
        best->out = out;
      }
    }
    if (!best) return {};
    for (const NodeId n : best->nodes) {
      const ValueId v = graph_.nodes[n].outputs[0];
      if (v != best->out) best->widest = std::max(best->widest, graph_.type(v).bytes());
    }
    const int64_t ends = std::max(graph_.type(best->in).bytes(), graph_.type(best->out).bytes());
    return best->widest >= kWide * ends ? best : std::nullopt;
  }

  const ir::Graph& graph_;
  std::vector<std::set<NodeId>> readers_;  // per value
  std::set<ValueId> outputs_;
};

// The value for one part: `made` of it, the constant itself, or a constant's movement once more, so
// that each product still reads through one of its own.
ValueId of_part(const ir::Graph& graph, ValueId v, std::map<ValueId, ValueId>& made,
                ir::Patch& patch) {
  if (const auto it = made.find(v); it != made.end()) return it->second;
  if (graph.value(v).kind != ir::ValueKind::kResult) return v;
  const ir::Node& node = graph.nodes[graph.value(v).producer];
  return patch.op(node.op->name, {of_part(graph, node.inputs[0], made, patch)}, node.attrs);
}

void split(const ir::Graph& graph, const Chain& chain, ir::Patch& patch) {
  patch.at(chain.nodes.back());
  const int64_t rows = graph.type(chain.in).shape[chain.axis] / kParts;
  std::vector<ValueId> parts;
  for (int64_t p = 0; p < kParts; ++p) {
    std::map<ValueId, ValueId> made;
    made[chain.in] = patch.op("slice", {chain.in},
                              {{"starts", std::vector<int64_t>{p * rows}},
                               {"ends", std::vector<int64_t>{(p + 1) * rows}},
                               {"axes", std::vector<int64_t>{chain.axis}}});
    for (const NodeId n : chain.nodes) {
      const ir::Node& node = graph.nodes[n];
      std::vector<ValueId> inputs;
      for (const ValueId v : node.inputs) inputs.push_back(of_part(graph, v, made, patch));
      made[node.outputs[0]] = patch.op(node.op->name, std::move(inputs), node.attrs);
    }
    parts.push_back(made.at(chain.out));
  }
  patch.replace(chain.out, patch.op("concat", std::move(parts), {{"axis", chain.axis}}));
}

}  // namespace

Result<ir::VerifiedGraph> split_rows(const ir::VerifiedGraph& canonical, const ir::OpSet& ops) {
  const std::vector<Chain> chains = Finder(*canonical).find();
  if (chains.empty()) return canonical;
  ir::Graph graph = *canonical;
  ir::Patch patch(graph, ops);
  for (const Chain& chain : chains) split(*canonical, chain, patch);
  PYC_TRY(patch.apply().status());
  return ir::verify_graph(std::move(graph));
}

}  // namespace pyc::passes
