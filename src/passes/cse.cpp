#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <tuple>

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
    const std::string_view sample(reinterpret_cast<const char*>(bytes.data()),
                                  std::min(bytes.size(), kSample));
    auto& bucket = buckets_[{value.type.dtype, value.type.shape, sample}];
    Candidate fresh{v, {}};
    for (Candidate& other : bucket) {
      if (equal(fresh, other)) return other.id;
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

  bool equal(Candidate& a, Candidate& b) const {
    const auto& x = graph_.value(a.id).constant;
    const auto& y = graph_.value(b.id).constant;
    if (x == y || x->bytes.size() <= kSample) return true;
    const bool generated = x->form == ConstData::Form::kRandom && y->form == x->form;
    if (generated && std::tie(x->seed, x->lo, x->hi) == std::tie(y->seed, y->lo, y->hi)) {
      return true;
    }
    if (!a.digest) a.digest = hash128(x->bytes);
    if (!b.digest) b.digest = hash128(y->bytes);
    return *a.digest == *b.digest && x->bytes == y->bytes;
  }

  const ir::Graph& graph_;
  std::map<std::tuple<DType, ir::Shape, std::string_view>, std::vector<Candidate>> buckets_;
};

// Op and attributes as text; doubles by their bits, so that NaN equals itself and -0.0 is not 0.0.
std::string key_of(const ir::NodeView& node) {
  std::string key(node.op().name);
  const auto bits = [&](double x) { key += fmt::format(" {:x}", std::bit_cast<uint64_t>(x)); };
  for (const auto& [name, attr] : node.attrs()) {
    key += fmt::format("|{}:{}", name, attr.index());
    if (const double* x = std::get_if<double>(&attr)) {
      bits(*x);
    } else if (const auto* all = std::get_if<std::vector<double>>(&attr)) {
      for (const double x : *all) bits(x);
    } else {
      key += ir::attr_to_string(attr);
    }
  }
  return key;
}

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
  std::map<std::pair<std::string, std::vector<ValueId>>, ir::NodeId> seen;
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) {
    const ir::NodeView node = patch.node(n);
    if (node.op().traits.random) continue;
    std::vector<ValueId> inputs = node.all_inputs();
    if (node.op().traits.commutative) std::sort(inputs.begin(), inputs.end());
    const auto [first, fresh] = seen.try_emplace({key_of(node), std::move(inputs)}, n);
    if (fresh) continue;
    context.count("equal_nodes");
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      patch.replace(node.outputs()[i], graph.nodes[first->second].outputs[i]);
    }
  }
  return patch.apply();
}

}  // namespace pyc::passes
