#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "base/hash.h"
#include "base/inline_vector.h"
#include "ir/patch.h"
#include "ir/rules.h"
#include "passes/passes.h"

namespace pyc::passes {
namespace {

using ir::ConstData;
using ir::ValueId;

// Finds constants with equal type and bytes. Bytes are read only as far as needed: a large constant
// is hashed only when another one of the same type begins with the same bytes.
class EqualConstants {
 public:
  EqualConstants(const ir::Graph& graph, std::pmr::memory_resource* memory)
      : graph_(graph), asked_(memory) {}

  // The first constant asked for that equals this one.
  ValueId first(ValueId v) {
    const ir::Value& value = graph_.value(v);
    const auto& bytes = value.constant->bytes;
    const Digest sample = hash128(bytes.span().first(std::min(bytes.size(), kSample)));
    const uint64_t key = mix(sample.lo, static_cast<uint64_t>(value.type.dtype));
    Candidate fresh{v, {}};
    const auto [begin, end] = asked_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
      Candidate& other = it->second;
      if (value.type == graph_.type(other.id) && equal(fresh, other)) return other.id;
    }
    asked_.emplace(key, fresh);
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
  std::pmr::unordered_multimap<uint64_t, Candidate> asked_;  // no two are equal
};

// Finds nodes of one op with equal attributes and inputs.
class EqualNodes {
 public:
  using Inputs = InlineVector<ValueId, 4>;

  EqualNodes(size_t nodes, std::pmr::memory_resource* memory) : asked_(memory) {
    asked_.reserve(nodes);
  }

  // The first node asked for that equals this one; inputs of commutative ops are sorted.
  ir::NodeId first(ir::NodeId n, const ir::NodeView& node, const Inputs& inputs) {
    uint64_t key = mix(0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&node.op())));
    for (const ValueId v : inputs) key = mix(key, v);
    const auto [begin, end] = asked_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
      const Candidate& other = it->second;
      const bool same = &other.node.op() == &node.op() && other.inputs == inputs &&
                        ir::same_attrs(other.node.attrs(), node.attrs());
      if (same) return other.id;
    }
    asked_.emplace(key, Candidate{n, node, inputs});
    return n;
  }

 private:
  struct Candidate {
    ir::NodeId id;
    ir::NodeView node;
    Inputs inputs;
  };
  std::pmr::unordered_multimap<uint64_t, Candidate> asked_;  // no two are equal
};

}  // namespace

Result<bool> cse(ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, context.ops);
  std::pmr::monotonic_buffer_resource memory;
  EqualConstants constants(graph, &memory);
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    if (graph.value(v).kind != ir::ValueKind::kConstant) continue;
    const ValueId first = constants.first(v);
    if (first == v) continue;
    context.count("equal_constants");
    patch.replace(v, first);
  }
  EqualNodes nodes(graph.nodes.size(), &memory);
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) {
    const ir::NodeView node = patch.node(n);
    if (node.op().traits.random) continue;
    EqualNodes::Inputs inputs;
    for (size_t i = 0; i < node.inputs(); ++i) inputs.push_back(node.input(i));
    if (node.op().traits.commutative) std::sort(inputs.begin(), inputs.end());
    const ir::NodeId first = nodes.first(n, node, inputs);
    if (first == n) continue;
    context.count("equal_nodes");
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      patch.replace(node.outputs()[i], graph.nodes[first].outputs[i]);
    }
  }
  return patch.apply();
}

}  // namespace pyc::passes
