#include "backends/cuda/generators/wgmma_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backends/cuda/generators/product_runs.h"

namespace pyc::cuda {
namespace {

constexpr std::string_view kMapFunctions =
    R"(#ifndef PYC_FENCED
struct __align__(64) pyc_map { u64 words[16]; };
#define PYC_MAP const __grid_constant__ pyc_map
#define PYC_MAPPED(name, maps)
PYC_FN void pyc_map_copy(u32 to, const pyc_map* map, i32 x, i32 y, u32 gate) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%2, %3}], [%4];" ::"r"(pyc_shared_place(to)), "l"(map), "r"(x), "r"(y),
               "r"(pyc_shared_place(gate)) : "memory");
}
PYC_FN void pyc_gate_expect_bytes(u32 at, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(pyc_shared_place(at)),
               "r"(bytes) : "memory");
}
PYC_FN void pyc_gates_ready() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
#endif
)";

bool has_map(const WgmmaProduct& product, bool of_b) {
  const lower::Contraction& c = product.contraction();
  const loop::Pool& pool = c.kernel->pool;
  const loop::ExprId load = padded_load(pool, (of_b ? c.b : c.a).value, product.factors);
  return load != loop::kNone && wgmma_bring(product, of_b) != WgmmaBring::kElements &&
         map_of(side_of_stage(pool, load, product, of_b)).has_value();
}

}  // namespace

MappedSide side_of_stage(const loop::Pool& pool, loop::ExprId load, const WgmmaProduct& product,
                         bool of_b) {
  const lower::Contraction& c = product.contraction();
  const bool in_columns = of_b != product.tile.swapped;
  return {.pool = &pool,
          .load = load,
          .row_var = of_b ? c.n_var : c.m_var,
          .k_var = c.k_var,
          .extent = of_b ? c.n : c.m,
          .k = c.k,
          .rows = in_columns ? product.tile.columns : product.tile.rows,
          .depth = kStageDepth,
          .along_rows = wgmma_bring(product, of_b) == WgmmaBring::kAlongRows};
}

bool wgmma_has_maps(const WgmmaProduct& product) {
  return product.contraction().batch_size() == 1 && has_map(product, false) &&
         has_map(product, true);
}

std::optional<TensorMap> map_of(const MappedSide& s) {
  const loop::Pool& pool = *s.pool;
  const loop::ExprNode& load = pool.node(s.load);
  if (load.op != loop::Op::kLoad || load.b != loop::kNone || s.row_var == loop::kNone) {
    return std::nullopt;
  }
  const loop::Affine offset = loop::affine_of(pool, load.a);
  const bool is_matrix = std::ranges::all_of(offset.terms, [&](const auto& term) {
    const loop::ExprNode& n = pool.node(term.first);
    const auto var = static_cast<loop::VarId>(n.imm);
    return n.op == loop::Op::kVar && (var == s.row_var || var == s.k_var);
  });
  if (!is_matrix || s.k == 0) return std::nullopt;
  const int64_t along_row = offset.coefficient(pool, s.row_var);
  const int64_t along_k = offset.coefficient(pool, s.k_var);
  const int64_t near = s.along_rows ? along_row : along_k;
  const int64_t far = (s.along_rows ? along_k : along_row) * kMapElement;
  const int64_t begin = offset.constant * kMapElement;
  if (near != 1 || far <= 0 || far >= kMostMapBytes || far % kMapAligned != 0 || begin < 0 ||
      begin % kMapAligned != 0) {
    return std::nullopt;
  }
  const int64_t columns = s.along_rows ? s.extent : s.k;
  const int64_t rows = s.along_rows ? s.k : s.extent;
  if (columns * kMapElement > far && rows > 1) return std::nullopt;  // rows would overlap
  const int64_t box_rows = s.along_rows ? s.depth : s.rows;
  if (box_rows > kMostBoxRows) return std::nullopt;
  return TensorMap{.columns = static_cast<uint32_t>(columns),
                   .rows = static_cast<uint32_t>(rows),
                   .box_rows = static_cast<uint32_t>(box_rows),
                   .row_bytes = far,
                   .offset_bytes = begin};
}

std::string map_copies(const MappedSide& s, const std::string& map, const std::string& first,
                       const std::string& to, const std::string& gate) {
  if (!s.along_rows) {
    return fmt::format("pyc_map_copy({}, &{}, t * {}, {}, {});\n", to, map, s.depth, first, gate);
  }
  std::string text;
  for (int64_t r = 0; r < s.rows; r += kBoxColumns) {
    text += fmt::format("pyc_map_copy({} + {}u, &{}, {} + {}, t * {}, {});\n", to,
                        r / kBoxColumns * s.depth * kBoxRowBytes, map, first, r, s.depth, gate);
  }
  return text;
}

std::string map_prelude() { return std::string(kMapFunctions); }

}  // namespace pyc::cuda
