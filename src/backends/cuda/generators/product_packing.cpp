#include "backends/cuda/generators/product_packing.h"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/hash.h"
#include "loop/walk.h"

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::kNone;

const lower::Contraction::Operand& packed_operand(const lower::Contraction& c, bool of_a) {
  return of_a ? c.a : c.b;
}

loop::VarId row_of(const lower::Contraction& c, bool of_a) { return of_a ? c.m_var : c.n_var; }

bool is_read_elsewhere(const lower::Contraction& c, bool of_a) {
  const uint32_t buffer = packed_operand(c, of_a).buffer;
  bool found = false;
  const auto look = [&](ExprId, const loop::ExprNode& n) {
    found = found || (n.op == loop::Op::kLoad && static_cast<uint32_t>(n.imm) == buffer);
    return !found;
  };
  loop::Walk walk(c.kernel->pool);
  walk(packed_operand(c, !of_a).value, look);
  for (const loop::Store& s : c.kernel->stores) walk(s.value, look);
  return found;
}

bool depends_on_batch(const lower::Contraction& c, bool of_a, size_t i) {
  return loop::depends_on(c.kernel->pool, packed_operand(c, of_a).value, c.batch_vars[i]);
}

// Where the operand's elements lie, along every variable that moves them.
std::string places_text(const lower::Group& group, bool of_a, DType dtype, PackingOrder order) {
  const lower::Contraction& c = *group.contraction;
  const lower::Contraction::Operand& o = packed_operand(c, of_a);
  std::string text = fmt::format("{} by {} from {}", dtype_name(dtype),
                                 order == PackingOrder::kByTerms ? "terms" : "rows",
                                 group.buffer_offset(o.buffer) + c.base_of(o));
  const auto along = [&](loop::VarId var) {
    const std::vector<int64_t> offsets = c.offsets_of(o, var);
    text += fmt::format(" {}:{}", offsets.size(), hash128(std::as_bytes(std::span(offsets))).hex());
  };
  along(row_of(c, of_a));
  along(c.k_var);
  for (size_t i = 0; i < c.batch.size(); ++i) {
    if (depends_on_batch(c, of_a, i)) along(c.batch_vars[i]);
  }
  return text;
}

// Lines of a packed operand begin at multiples of an access.
constexpr int64_t kLineBytes = 16;

// The packed operand of the group as it was.
Result<runtime::Parameter> pack_operand(const ir::Graph& graph, const lower::Group& group,
                                        const ProductPacking& packing) {
  const lower::Contraction& c = *group.contraction;
  const lower::Contraction::Operand& o = packed_operand(c, packing.of_a);
  const int64_t size = dtype_size(packing.dtype);
  const int64_t bytes = packing.elements() * size;
  PYC_ASSIGN(AlignedBuffer made, AlignedBuffer::create(static_cast<size_t>(bytes)));
  auto buffer = std::make_shared<AlignedBuffer>(std::move(made));
  std::byte* out = buffer->data();
  std::memset(out, 0, static_cast<size_t>(bytes));
  const std::byte* from = graph.value(group.buffer_values[o.buffer]).constant->bytes.data() +
                          group.buffer_offset_bytes(o.buffer);
  std::vector<int64_t> matrices = {c.base_of(o)};
  for (size_t i = 0; i < c.batch.size(); ++i) {
    if (!depends_on_batch(c, packing.of_a, i)) continue;
    std::vector<int64_t> next;
    for (const int64_t m : matrices) {
      for (const int64_t part : c.offsets_of(o, c.batch_vars[i])) next.push_back(m + part);
    }
    matrices = std::move(next);
  }
  std::vector<int64_t> lines = c.offsets_of(o, c.k_var);
  std::vector<int64_t> places = c.offsets_of(o, row_of(c, packing.of_a));
  if (packing.order == PackingOrder::kByRows) std::swap(lines, places);
  for (const int64_t matrix : matrices) {
    for (const int64_t line : lines) {
      for (size_t i = 0; i < places.size(); ++i) {
        std::memcpy(out + static_cast<int64_t>(i) * size, from + (matrix + line + places[i]) * size,
                    static_cast<size_t>(size));
      }
      out += packing.length * size;
    }
  }
  runtime::Parameter parameter;
  parameter.data = buffer->data();
  parameter.bytes = bytes;
  parameter.owner = std::move(buffer);
  return parameter;
}

}  // namespace

std::optional<ProductPacking> packing_of(const ir::Graph& graph, const lower::Group& group,
                                         bool of_a, DType dtype, PackingOrder order) {
  const lower::Contraction& c = *group.contraction;
  const lower::Contraction::Operand& o = packed_operand(c, of_a);
  if (o.load == kNone || o.dtype != dtype || row_of(c, of_a) == kNone || c.k == 0) {
    return std::nullopt;
  }
  const ir::Value& value = graph.value(group.buffer_values[o.buffer]);
  if (value.kind != ir::ValueKind::kConstant || is_read_elsewhere(c, of_a)) return std::nullopt;
  const int64_t rows = of_a ? c.m : c.n;
  const bool by_terms = order == PackingOrder::kByTerms;
  const int64_t step = kLineBytes / dtype_size(dtype);
  ProductPacking p;
  p.of_a = of_a;
  p.buffer = o.buffer;
  p.dtype = dtype;
  p.order = order;
  p.lines = by_terms ? c.k : rows;
  p.length = ((by_terms ? rows : c.k) + step - 1) / step * step;
  for (size_t i = 0; i < c.batch.size(); ++i) {
    if (depends_on_batch(c, of_a, i)) p.matrices *= c.batch[i];
  }
  p.text = places_text(group, of_a, dtype, order);
  return p;
}

std::optional<ProductPacking> product_packing(const ir::Graph& graph, const lower::Group& group) {
  const lower::Contraction& c = *group.contraction;
  for (const bool of_a : {true, false}) {
    const lower::Contraction::Operand& o = packed_operand(c, of_a);
    if (o.form != lower::Contraction::Form::kDigits || o.load != o.value) continue;
    if (auto p = packing_of(graph, group, of_a, DType::kF32, PackingOrder::kByTerms)) return p;
  }
  return std::nullopt;
}

lower::Group with_packing(const lower::Group& given, const ProductPacking& packing) {
  lower::Group group = given;
  lower::Contraction& c = *group.contraction;
  auto kernel = std::make_shared<loop::Kernel>(*c.kernel);
  loop::Pool& pool = kernel->pool;
  lower::Contraction::Operand o = packed_operand(c, packing.of_a);
  const auto times = [&](loop::VarId var, int64_t stride) {
    return pool.binary(loop::Op::kMul, pool.var(var), pool.integer(stride));
  };
  const bool by_terms = packing.order == PackingOrder::kByTerms;
  o.base = 0;
  o.row_stride = by_terms ? 1 : packing.length;
  o.k_stride = by_terms ? packing.length : 1;
  ExprId at = pool.binary(loop::Op::kAdd, times(row_of(c, packing.of_a), o.row_stride),
                          times(c.k_var, o.k_stride));
  o.batch_strides.assign(c.batch.size(), 0);
  int64_t stride = packing.lines * packing.length;
  for (size_t i = c.batch.size(); i-- > 0;) {
    if (!depends_on_batch(c, packing.of_a, i)) continue;
    o.batch_strides[i] = stride;
    at = pool.binary(loop::Op::kAdd, at, times(c.batch_vars[i], stride));
    stride *= c.batch[i];
  }
  for (loop::Kernel* k : {kernel.get(), &group.kernel}) {
    k->buffers[packing.buffer].elements = packing.elements();
  }
  if (packing.buffer < group.buffer_offsets.size()) group.buffer_offsets[packing.buffer] = 0;
  o.load = pool.load(packing.buffer, packing.dtype, at);
  o.value = pool.convert(o.load, DType::kF32);
  o.form =
      o.load == o.value ? lower::Contraction::Form::kLinear : lower::Contraction::Form::kDigits;
  (packing.of_a ? c.a : c.b) = std::move(o);
  c.kernel = std::move(kernel);
  return group;
}

void use_packed(backends::Candidate& candidate, CudaPlan& plan, const lower::Group& group,
                const ProductPacking& packing) {
  for (CudaPlan::Part& part : plan.parts) {
    for (size_t i = 0; i < part.kernel.buffers.size(); ++i) {
      if (part.kernel.buffers[i] != packing.buffer) continue;
      part.operands[i] = {.kind = backends::Operand::Kind::kPacked};
    }
  }
  plan.packers.push_back([packing](const ir::Graph& graph, const lower::Group& given) {
    return pack_operand(graph, given, packing);
  });
  candidate.needs.packed.push_back({group.buffer_values[packing.buffer],
                                    packing.elements() * dtype_size(packing.dtype), packing.text});
}

}  // namespace pyc::cuda
