#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "ir/patch.h"
#include "passes/passes.h"

namespace pyc::passes {
namespace {

using ir::ConstData;
using ir::ValueId;

// Finds constants with equal type and bytes. Bytes are read only as far as needed: a large constant
// is hashed only when another one of the same type begins with the same bytes.
class EqualConstants {
 public:
  explicit EqualConstants(const ir::Graph& graph) : graph_(graph) {}

  // The first constant asked for that equals this one.
  ValueId first(ValueId v) {
    const ir::Value& value = graph_.value(v);
    const auto& bytes = value.constant->bytes;
    const Digest sample = hash128(bytes.span().first(std::min(bytes.size(), kSample)));
    auto& bucket = buckets_[mix(sample.lo, static_cast<uint64_t>(value.type.dtype))];
    Candidate fresh{v, {}};
    for (Candidate& other : bucket) {
      if (value.type == graph_.type(other.id) && equal(fresh, other)) return other.id;
    }
    bucket.push_back(fresh);
    return v;
  }

 private:
  static constexpr size_t kSample = 64;  // bytes

  struct Candidate {
    ValueId id;
    std::optional<Digest> digest;
  };

  // Of one type.
  bool equal(Candidate& a, Candidate& b) const {
    const auto& x = graph_.value(a.id).constant;
    const auto& y = graph_.value(b.id).constant;
    if (x == y || x->bytes.empty()) return true;
    const size_t sampled = std::min(x->bytes.size(), kSample);
    if (std::memcmp(x->bytes.data(), y->bytes.data(), sampled) != 0) return false;
    if (x->bytes.size() == sampled) return true;
    const bool generated = x->form == ConstData::Form::kRandom && y->form == x->form;
    if (generated && std::tie(x->seed, x->lo, x->hi) == std::tie(y->seed, y->lo, y->hi)) {
      return true;
    }
    if (!a.digest) a.digest = hash128(x->bytes);
    if (!b.digest) b.digest = hash128(y->bytes);
    return *a.digest == *b.digest && x->bytes == y->bytes;
  }

  const ir::Graph& graph_;
  std::unordered_map<uint64_t, std::vector<Candidate>> buckets_;  // asked, never gone through
};

// Doubles by their bits, so that NaN equals itself and -0.0 is not 0.0.
bool same_attr(const ir::Attr& a, const ir::Attr& b) {
  const auto same = [](double x, double y) {
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
  };
  if (a.index() != b.index()) return false;
  if (const double* x = std::get_if<double>(&a)) return same(*x, std::get<double>(b));
  if (const auto* all = std::get_if<std::vector<double>>(&a)) {
    const auto& others = std::get<std::vector<double>>(b);
    return std::equal(all->begin(), all->end(), others.begin(), others.end(), same);
  }
  return a == b;
}

bool same_attrs(const ir::Attrs& a, const ir::Attrs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_attr(x.second, y.second);
  });
}

// Finds nodes of one op with equal attributes and inputs.
class EqualNodes {
 public:
  // The first node asked for that equals this one; inputs of commutative ops are sorted.
  ir::NodeId first(ir::NodeId n, const ir::NodeView& node, std::vector<ValueId> inputs) {
    uint64_t key = mix(0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&node.op())));
    for (const ValueId v : inputs) key = mix(key, v);
    std::vector<Candidate>& bucket = buckets_[key];
    for (const Candidate& other : bucket) {
      const bool same = &other.node.op() == &node.op() && other.inputs == inputs &&
                        same_attrs(other.node.attrs(), node.attrs());
      if (same) return other.id;
    }
    bucket.push_back({n, node, std::move(inputs)});
    return n;
  }

 private:
  struct Candidate {
    ir::NodeId id;
    ir::NodeView node;
    std::vector<ValueId> inputs;
  };
  std::unordered_map<uint64_t, std::vector<Candidate>> buckets_;  // asked, never gone through
};

}  // namespace

Result<bool> cse(ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, context.ops);
  EqualConstants constants(graph);
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    if (graph.value(v).kind != ir::ValueKind::kConstant) continue;
    const ValueId first = constants.first(v);
    if (first == v) continue;
    context.count("equal_constants");
    patch.replace(v, first);
  }
  EqualNodes nodes;
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) {
    const ir::NodeView node = patch.node(n);
    if (node.op().traits.random) continue;
    std::vector<ValueId> inputs = node.all_inputs();
    if (node.op().traits.commutative) std::sort(inputs.begin(), inputs.end());
    const ir::NodeId first = nodes.first(n, node, std::move(inputs));
    if (first == n) continue;
    context.count("equal_nodes");
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      patch.replace(node.outputs()[i], graph.nodes[first].outputs[i]);
    }
  }
  return patch.apply();
}

}  // namespace pyc::passes
