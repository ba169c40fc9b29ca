#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "ir/patch.h"
#include "ir/readers.h"
#include "passes/passes.h"

namespace pyc::passes {
namespace {

using ir::NodeId;
using ir::ValueId;
using Perm = std::vector<int64_t>;

// A constant this small is folded after a transpose, so that transposing it costs nothing.
constexpr int64_t kFreeConstantBytes = int64_t{1} << 16;
// Orders that are weighed for one region.
constexpr int kMaxTried = 16;

Perm perm_of(const ir::NodeView& transpose) {
  Perm perm = std::get<Perm>(transpose.attrs().at("perm"));
  if (!perm.empty()) return perm;
  perm.resize(transpose.type().shape.size());
  std::iota(perm.rbegin(), perm.rend(), 0);
  return perm;
}

Perm inverse(const Perm& perm) {
  Perm back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return back;
}

bool is_identity(const Perm& perm) { return std::is_sorted(perm.begin(), perm.end()); }

// The shape with as many dims as `rank`, ones in front.
ir::Shape aligned(const ir::Shape& shape, size_t rank) {
  ir::Shape out(rank - shape.size(), 1);
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}

ir::Shape permuted(const ir::Shape& shape, const Perm& perm) {
  ir::Shape out;
  for (const int64_t from : perm) out.push_back(shape[static_cast<size_t>(from)]);
  return out;
}

// Whether permuting the shape leaves its elements where they are.
bool only_reshapes(const ir::Shape& shape, const Perm& perm) {
  Perm moved;
  for (const int64_t from : perm) {
    if (shape[static_cast<size_t>(from)] != 1) moved.push_back(from);
  }
  return is_identity(moved);
}

// Elementwise nodes with results of one shape, connected by their values. In order.
struct Region {
  std::vector<NodeId> nodes;
  std::set<ValueId> made;
  std::set<ValueId> read;  // but not made
};

class Mover {
 public:
  Mover(ir::Graph& graph, const PassContext& context)
      : graph_(graph), patch_(graph, context.ops), context_(context), readers_(graph) {
    is_output_.assign(graph.values.size(), false);
    for (const ValueId v : graph.outputs) is_output_[v] = true;
  }

  Result<bool> run() {
    const auto is_transpose = [](const ir::Node& node) { return node.op->name == "transpose"; };
    if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), is_transpose)) return false;
    for (const Region& region : regions()) {
      const Perm best = best_order(region);
      if (is_identity(best)) continue;
      context_.count("reordered_region");
      rewrite(region, best);
    }
    return patch_.apply();
  }

 private:
  bool in_regions(const ir::Node& node) const {
    return node.op->traits.elementwise && node.outputs.size() == 1 &&
           graph_.type(node.outputs[0]).rank() > 1;
  }

  std::vector<Region> regions() const {
    std::vector<NodeId> root(graph_.nodes.size());
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&](NodeId n) {
      while (root[n] != n) n = root[n] = root[root[n]];
      return n;
    };
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      if (!in_regions(node)) continue;
      for (const ValueId v : node.inputs) {
        const NodeId m = graph_.value(v).producer;
        if (m == ir::kNoId || !in_regions(graph_.nodes[m])) continue;
        if (graph_.type(v).shape == graph_.type(node.outputs[0]).shape) root[find(n)] = find(m);
      }
    }
    std::map<NodeId, Region> by_root;
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      if (!in_regions(graph_.nodes[n])) continue;
      Region& region = by_root[find(n)];
      region.nodes.push_back(n);
      region.made.insert(graph_.nodes[n].outputs[0]);
    }
    std::vector<Region> all;
    for (auto& [_, region] : by_root) {
      for (const NodeId n : region.nodes) {
        for (const ValueId v : graph_.nodes[n].inputs) {
          if (!region.made.contains(v)) region.read.insert(v);
        }
      }
      all.push_back(std::move(region));
    }
    return all;
  }

  bool inside(const Region& region, NodeId n) const {
    return graph_.nodes[n].outputs.size() == 1 && region.made.contains(graph_.nodes[n].outputs[0]);
  }

  ir::NodeView transpose_of(ValueId v) const {
    const NodeId n = graph_.value(v).producer;
    if (n == ir::kNoId || graph_.nodes[n].op->name != "transpose") return {};
    return {patch_, graph_.nodes[n]};
  }

  // Transposes that the region needs at its border when it computes on values permuted by `perm`.
  int64_t cost(const Region& region, const Perm& perm) const {
    int64_t total = 0;
    for (const ValueId v : region.read) total += input_cost(region, v, perm);
    for (const ValueId v : region.made) total += output_cost(region, v, perm);
    return total;
  }

  int64_t input_cost(const Region& region, ValueId v, const Perm& perm) const {
    const ir::NodeView transpose = transpose_of(v);
    if (is_identity(perm)) {
      const auto in_region = [&](NodeId n) { return inside(region, n); };
      const bool only_here = !is_output_[v] && std::ranges::all_of(readers_.of(v), in_region);
      return transpose && only_here ? 1 : 0;
    }
    const ir::Shape shape = aligned(graph_.type(v).shape, perm.size());
    if (only_reshapes(shape, perm) || patch_.uniform(v)) return 0;
    const bool constant = graph_.value(v).kind == ir::ValueKind::kConstant;
    if (constant && graph_.type(v).bytes() <= kFreeConstantBytes) return 0;
    return transpose && inverse(perm_of(transpose)) == perm ? 0 : 1;
  }

  int64_t output_cost(const Region& region, ValueId v, const Perm& perm) const {
    std::set<Perm> wanted;  // the orders that readers outside ask for
    Perm plain(perm.size());
    std::iota(plain.begin(), plain.end(), 0);
    if (is_output_[v]) wanted.insert(plain);
    for (const NodeId n : readers_.of(v)) {
      if (inside(region, n)) continue;
      const ir::NodeView reader{patch_, graph_.nodes[n]};
      wanted.insert(reader.is("transpose") ? perm_of(reader) : plain);
    }
    wanted.erase(perm);
    return static_cast<int64_t>(wanted.size());
  }

  Perm best_order(const Region& region) const {
    const size_t rank = graph_.type(*region.made.begin()).shape.size();
    Perm best(rank);
    std::iota(best.begin(), best.end(), 0);
    std::set<Perm> candidates;
    for (const ValueId v : region.read) {
      const ir::NodeView transpose = transpose_of(v);
      if (transpose && graph_.type(v).shape.size() == rank) {
        candidates.insert(inverse(perm_of(transpose)));
      }
    }
    for (const ValueId v : region.made) {
      for (const NodeId n : readers_.of(v)) {
        const ir::NodeView reader{patch_, graph_.nodes[n]};
        if (reader.is("transpose")) candidates.insert(perm_of(reader));
      }
    }
    if (candidates.empty()) return best;
    int64_t least = cost(region, best);
    int tried = 0;
    for (const Perm& perm : candidates) {
      if (++tried > kMaxTried) break;
      const int64_t c = cost(region, perm);
      if (c >= least) continue;
      least = c;
      best = perm;
    }
    return best;
  }

  void rewrite(const Region& region, const Perm& perm) {
    std::map<ValueId, ValueId> moved;
    for (const NodeId n : region.nodes) {
      const ir::Node& node = graph_.nodes[n];
      patch_.at(n);
      std::vector<ValueId> inputs;
      for (const ValueId v : node.inputs) {
        const auto [it, fresh] = moved.try_emplace(v, ir::kNoId);
        if (fresh) it->second = transposed(v, perm);
        inputs.push_back(it->second);
      }
      const ValueId out = patch_.op(node.op->name, std::move(inputs), node.attrs);
      moved[node.outputs[0]] = out;
      patch_.replace(node.outputs[0], patch_.op("transpose", {out}, {{"perm", inverse(perm)}}));
    }
  }

  // A value from outside a region in the region's order; canonicalize removes what cancels.
  ValueId transposed(ValueId v, const Perm& perm) {
    const ir::TensorType& type = graph_.type(v);
    if (type.elements() == 1 && type.rank() <= 1) return v;
    const ir::Shape full = aligned(type.shape, perm.size());
    if (only_reshapes(full, perm)) {
      return patch_.op("reshape", {v}, {{"shape", permuted(full, perm)}});
    }
    if (type.shape != full) v = patch_.op("reshape", {v}, {{"shape", full}});
    return patch_.op("transpose", {v}, {{"perm", perm}});
  }

  ir::Graph& graph_;
  ir::Patch patch_;
  const PassContext& context_;
  ir::Readers readers_;
  std::vector<bool> is_output_;
};

}  // namespace

Result<bool> move_transposes(ir::Graph& graph, const PassContext& context) {
  return Mover(graph, context).run();
}

}  // namespace pyc::passes
