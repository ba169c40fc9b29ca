#include "backends/cuda/generators/attention_indices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "backends/cuda/generators/attention_halves_sizes.h"
#include "loop/renamed.h"

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::Op;

constexpr int64_t kMostExact = int64_t{1} << 24;

// What element 0 of the buffer is, if every element is one more than the one before.
std::optional<int64_t> counts_from(const ir::Graph& graph, const lower::Group& group,
                                   uint32_t buffer) {
  const loop::Buffer& b = group.kernel.buffers[buffer];
  const ir::ValueId id = group.buffer_values[buffer];
  if (b.access != loop::Access::kRead || b.dtype != DType::kF32 || id == ir::kNoId) return {};
  const ir::Value& value = graph.value(id);
  if (value.kind != ir::ValueKind::kConstant || b.elements <= 0 || b.elements > kMostExact) {
    return {};
  }
  const std::byte* const from = value.constant->bytes.data() + group.buffer_offset_bytes(buffer);
  const auto element = [&](int64_t i) {
    float x = 0.0F;
    std::memcpy(&x, from + i * static_cast<int64_t>(sizeof x), sizeof x);
    return x;
  };
  const float first = element(0);
  if (!(first >= static_cast<float>(-kMostExact) && first <= 0.0F)) return {};
  const auto begin = static_cast<int64_t>(first);
  for (int64_t i = 0; i < b.elements; ++i) {
    if (element(i) != static_cast<float>(begin + i)) return {};
  }
  return begin;
}

}  // namespace

lower::Group with_indices(const ir::Graph& graph, const lower::Group& group) {
  lower::Group out = group;
  loop::Pool& pool = out.kernel.pool;
  loop::Renamed renamed(pool);
  std::map<ExprId, ExprId> indices;  // of loads, as numbers
  const auto count = static_cast<ExprId>(pool.size());
  for (ExprId e = 0; e < count; ++e) {
    const loop::ExprNode n = pool.node(e);
    if (n.op == Op::kLoad && n.b == loop::kNone) {
      const auto begin = counts_from(graph, group, static_cast<uint32_t>(n.imm));
      if (!begin) continue;
      indices[e] = pool.binary(Op::kAdd, n.a, pool.integer(*begin));
      renamed.set_value(e, pool.convert(indices[e], DType::kF32));
    }
    if (n.op == Op::kSub && indices.contains(n.a) && indices.contains(n.b)) {
      const ExprId difference = pool.binary(Op::kSub, indices[n.a], indices[n.b]);
      renamed.set_value(e, pool.convert(difference, DType::kF32));
    }
  }
  if (!indices.empty()) out.attention->score = renamed(out.attention->score);
  return out;
}

std::vector<LinearNumber> linear_numbers(const loop::Pool& pool, const lower::Attention& attention,
                                         ExprId score) {
  const loop::VarId vars[] = {attention.query_var, attention.block_var, attention.key_var};
  std::vector<LinearNumber> out;
  for (const ExprId e : reached(pool, {score})) {
    const loop::ExprNode& n = pool.node(e);
    if (n.op != Op::kConvert || n.dtype != DType::kF32) continue;
    const loop::ExprNode& index = pool.node(n.a);
    // A tile may reach beyond the last query and key.
    if (index.dtype != DType::kI64 || std::max(-index.lo, index.hi) > kMostExact / 2) continue;
    const loop::Affine sum = loop::affine_of(pool, n.a);
    int64_t by[] = {0, 0, 0};
    size_t terms = 0;
    for (size_t i = 0; i < std::size(vars); ++i) {
      if (vars[i] != loop::kNone) by[i] = sum.coefficient(pool, vars[i]);
      terms += by[i] != 0 ? 1 : 0;
    }
    if (terms != sum.terms.size()) continue;
    const std::string name = fmt::format("linear{}", out.size());
    out.push_back({.of = e,
                   .first = fmt::format(
                       "const float {} = pyc_i32_to_f32({} * own + {} * j + {} * quad + {});\n",
                       name, by[0], by[1], by[2] * 2, sum.constant),
                   .text = fmt::format(
                       "pyc_add_f32({}, (float)({} * (n / 2 % 2 * 8) + {} * (n / 4 * 8 + n % 2)))",
                       name, by[0], by[2])});
  }
  return out;
}

}  // namespace pyc::cuda
