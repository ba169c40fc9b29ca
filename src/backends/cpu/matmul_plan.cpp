// Which tile, which blocks, which packing: decisions from sizes alone. None of them changes bits.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "backends/cpu/kernel_generator.h"
#include "backends/cpu/matmul.h"
#include "backends/cpu/registers.h"

namespace pyc::cpu {
namespace {

using loop::ExprId;
using loop::kNone;

// What a block of B may take of the second-level cache.
constexpr int64_t kBlockBytes = 256 << 10;
// A B that does not stay in that cache from one run to the next.
constexpr int64_t kLargeBytes = 512 << 10;
// A B that is small enough to be read in place.
constexpr int64_t kInPlaceBytes = 32 << 10;

// What a task costs beside its tiles.
constexpr double kTaskOverheadNs = 100.0;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool reads_buffer(const loop::Kernel& kernel, ExprId id, uint32_t buffer) {
  if (id == kNone) return false;
  const loop::ExprNode& n = kernel.pool.node(id);
  if (n.op == loop::Op::kLoad && static_cast<uint32_t>(n.imm) == buffer) return true;
  return reads_buffer(kernel, n.a, buffer) || reads_buffer(kernel, n.b, buffer) ||
         reads_buffer(kernel, n.c, buffer);
}

// Whether B is also read as it is: by the epilogue, or as A.
bool reads_b_elsewhere(const lower::Group& group) {
  const lower::Contraction& c = *group.contraction;
  if (c.a.buffer == c.b.buffer) return true;
  return std::any_of(group.kernel.stores.begin(), group.kernel.stores.end(),
                     [&](const loop::Store& s) {
                       return reads_buffer(group.kernel, s.value, c.b.buffer) ||
                              reads_buffer(group.kernel, s.offset, c.b.buffer);
                     });
}

// Most rows a tile of `columns` columns can have without spilling. On aarch64 a row of A takes a
// register, and B's are there twice (loads run ahead); on x86 rows are broadcast from memory.
int most_rows(const Registers& r, bool by_lanes, int columns) {
  const int vectors = columns / r.native_lanes;
  if (!by_lanes) {
    // One row takes its B straight from memory.
    if (2 * vectors >= r.count) return vectors + 4 <= r.count ? 1 : 0;
    return std::min(r.rows, (r.count - vectors - 1) / vectors);
  }
  if (vectors >= r.in_flight) return 1;
  if (vectors >= r.in_flight / 2) return 2;
  return std::min(r.rows, (r.count - 2 - 2 * vectors) / (vectors + 1));
}

// How many tiles of at most `most` rows: if possible all alike, since code for one kind of tile
// takes half as long to make. Without any that comes near, as even as can be.
int64_t tiles_of(int64_t m, int64_t most) {
  for (int64_t rows = most; 3 * rows >= 2 * most; --rows) {
    if (m % rows == 0) return m / rows;
  }
  return ceil_div(m, most);
}

// The tile with the least work over all of m and n: each takes as long as its fmas, their latency,
// or its part of B to come from the second-level cache, about one vector a cycle.
void choose_tile(const CodegenTarget& target, MatmulPlan& p) {
  const Registers r = registers_of(target);
  p.lanes = target.lanes;
  p.a_by_lanes = target.is_aarch64();
  const int unit = std::max(r.native_lanes, p.lanes);
  double best = std::numeric_limits<double>::max();
  for (const int units : {2, 1, 3, 16, 8, 4}) {
    const int columns = units * unit;
    const int most = most_rows(r, p.a_by_lanes, columns);
    if (most < 1) continue;
    const int64_t tiles = tiles_of(p.m, std::min<int64_t>(most, p.m));
    const auto rows = static_cast<int>(ceil_div(p.m, tiles));
    const int64_t tall = p.m - tiles * (rows - 1);
    const auto steps = [&](int tile_rows) {
      const int vectors = columns / r.native_lanes;
      return std::max({tile_rows * vectors, r.in_flight, vectors * r.per_cycle});
    };
    const double work = static_cast<double>(ceil_div(p.n, columns)) *
                        static_cast<double>(tall * steps(rows) + (tiles - tall) * steps(rows - 1));
    if (work >= best * 0.97) continue;
    best = work;
    p.tile_rows = rows;
    p.tile_columns = columns;
    p.row_tiles = tiles;
    p.tall_tiles = tall;
  }
  p.panels = ceil_div(p.n, p.tile_columns);
  p.name = fmt::format("f32_matmul__{}_{}x{}", r.isa, p.tile_rows, p.tile_columns);
  if (p.lanes != r.native_lanes) p.name += fmt::format("_l{}", p.lanes);
}

void choose_weights(const lower::Group& group, bool b_is_constant, MatmulPlan& p) {
  const lower::Contraction& c = *group.contraction;
  using Weights = MatmulPlan::Weights;
  const bool elsewhere = reads_b_elsewhere(group);
  const bool readable = c.b.row_stride == 1 && p.n % p.tile_columns == 0 && c.b.k_stride > 0;
  const bool small = p.k * c.b.k_stride * 4 <= kInPlaceBytes || p.m <= p.tile_rows;
  if (b_is_constant && !elsewhere) {
    p.weights = Weights::kPackedAhead;
  } else if (readable && small) {
    p.weights = Weights::kInPlace;
    p.b_slot = c.b.buffer;
    p.b_panel_stride = p.tile_columns;
    p.b_k_stride = c.b.k_stride;
    p.b_batch_strides = c.b.batch_strides;
    return;
  } else {
    p.weights = Weights::kPackedAtRun;
  }
  p.b_slot = elsewhere ? static_cast<uint32_t>(group.kernel.buffers.size()) : c.b.buffer;
  p.b_panel_stride = p.k * p.tile_columns;
  p.b_k_stride = p.tile_columns;
  p.b_batch_strides.assign(c.batch.size(), 0);
  for (size_t i = c.batch.size(); i-- > 0;) {
    if (c.b.batch_strides[i] == 0) continue;
    p.b_batch_strides[i] = p.b_matrices * p.panels * p.b_panel_stride;
    p.b_matrices *= c.batch[i];
  }
  p.packed_bytes = p.b_matrices * p.panels * p.b_panel_stride * 4;
}

// The number of blocks in m and n whose busiest thread has least to do.
void choose_blocks(int threads, MatmulPlan& p) {
  const int64_t panel_bytes = p.k * p.tile_columns * 4;
  const int64_t panels_per_block = std::max<int64_t>(1, kBlockBytes / panel_bytes);
  const int64_t fewest = ceil_div(p.panels, panels_per_block);
  double best = std::numeric_limits<double>::max();
  for (int64_t m_blocks = 1; m_blocks <= std::min<int64_t>(p.row_tiles, 4 * threads); ++m_blocks) {
    for (int64_t n_blocks = fewest; n_blocks <= std::min(p.panels, fewest + 4 * threads);
         ++n_blocks) {
      const int64_t tasks = p.batch * m_blocks * n_blocks;
      const int64_t per_thread = ceil_div(tasks, threads);
      const double tiles = static_cast<double>(ceil_div(p.row_tiles, m_blocks));
      const double panels = static_cast<double>(ceil_div(p.panels, n_blocks));
      // In units of one tile over the whole k; reading A and B anew costs a little each.
      const double task = tiles * panels + 0.05 * tiles + 0.1 * panels + 0.1;
      const double time = task * static_cast<double>(per_thread);
      if (time < best * 0.999) {
        best = time;
        p.m_blocks = m_blocks;
        p.n_blocks = n_blocks;
      }
    }
  }
}

}  // namespace

std::string matmul_rejected(const lower::Group& group, const CodegenTarget& target) {
  if (!group.contraction) return "no_contraction";
  const lower::Contraction& c = *group.contraction;
  if (c.dtype != DType::kF32 || c.a.dtype != DType::kF32 || c.b.dtype != DType::kF32) {
    return "dtype_not_f32";
  }
  if (c.k <= 0) return "k_is_zero";
  if (c.m <= 0 || c.n <= 0 || c.batch_size() <= 0) return "empty";
  if (c.segment != kMatmulSegment) return "segment_not_256";
  if (c.n_var == kNone) return "no_free_column";
  if (group.kernel.scratch_bytes() != 0) return "has_scratch";
  if (!group.kernel.checks.empty()) return "has_checks";
  if (target.lanes != 4 && target.lanes != 8 && target.lanes != 16) return "lanes_not_supported";
  return "";
}

MatmulPlan plan_matmul(const lower::Group& group, bool b_is_constant, const CodegenTarget& target,
                       int threads) {
  const lower::Contraction& c = *group.contraction;
  MatmulPlan p;
  p.m = c.m;
  p.n = c.n;
  p.k = c.k;
  p.batch = c.batch_size();
  p.segments = ceil_div(c.k, kMatmulSegment);
  choose_tile(target, p);
  choose_weights(group, b_is_constant, p);
  p.pack_a = c.a.k_stride != 1;
  if (p.pack_a) p.scratch_bytes = p.tile_rows * ceil_div(p.k, p.unroll) * p.unroll * 4;
  choose_blocks(std::max(threads, 1), p);
  // One tile alone uses each line once and leaves no time to fetch. On aarch64 not measured.
  p.fetch_b = !target.is_aarch64() && p.weights == MatmulPlan::Weights::kPackedAhead &&
              p.packed_bytes > kLargeBytes && p.row_tiles >= 2 * p.m_blocks;
  return p;
}

lower::KernelNeeds matmul_needs(const lower::Group& group, const MatmulPlan& plan) {
  lower::KernelNeeds needs;
  needs.scratch_bytes = plan.scratch_bytes;
  switch (plan.weights) {
    case MatmulPlan::Weights::kPackedAhead:
      needs.packed.push_back({group.buffer_values[group.contraction->b.buffer], plan.packed_bytes});
      break;
    case MatmulPlan::Weights::kPackedAtRun:
      needs.workspace_bytes = plan.packed_bytes;
      break;
    case MatmulPlan::Weights::kInPlace:
      break;
  }
  return needs;
}

double matmul_cost_ns(const lower::Group& group, const MatmulPlan& plan,
                      const CodegenTarget& target, int threads) {
  const double rate = tile_flops_per_ns(target);
  const double rows = static_cast<double>(plan.row_tiles) * plan.tile_rows;
  const double columns = static_cast<double>(plan.panels) * plan.tile_columns;
  const double flops =
      2.0 * static_cast<double>(plan.batch) * rows * columns * static_cast<double>(plan.k);
  const double tasks = static_cast<double>(plan.tasks());
  const double rounds = static_cast<double>(ceil_div(plan.tasks(), threads));
  const double share = rounds / tasks;
  const double bytes = static_cast<double>(group.bytes);
  double ns = std::max(flops * share / rate, bytes * share / kBytesPerNs);
  ns += rounds * kTaskOverheadNs + kStepOverheadNs;
  if (plan.weights == MatmulPlan::Weights::kPackedAtRun) {
    ns += static_cast<double>(plan.packed_bytes) / (kBytesPerNs / 4) / threads + kStepOverheadNs;
  }
  return ns;
}

std::vector<MatmulStep> matmul_steps(const lower::Group& group, const MatmulPlan& plan,
                                     const std::string& symbol) {
  using backends::Operand;
  using Weights = MatmulPlan::Weights;
  const auto value = [&](size_t buffer) {
    return Operand{Operand::Kind::kValue, group.buffer_values[buffer], 0, 0};
  };
  const Operand workspace{Operand::Kind::kWorkspace, ir::kNoId, 0, 0};
  const Operand packed{Operand::Kind::kPacked, ir::kNoId, 0, 0};
  std::vector<MatmulStep> steps;
  if (plan.weights == Weights::kPackedAtRun) {
    steps.push_back({symbol + "_pack",
                     {value(group.contraction->b.buffer), workspace},
                     plan.b_matrices * plan.panels});
  }
  MatmulStep multiply{symbol, {}, plan.tasks()};
  for (size_t i = 0; i < group.buffer_values.size(); ++i) multiply.operands.push_back(value(i));
  if (plan.weights != Weights::kInPlace) {
    multiply.operands.resize(std::max<size_t>(multiply.operands.size(), plan.b_slot + 1));
    multiply.operands[plan.b_slot] = plan.weights == Weights::kPackedAhead ? packed : workspace;
  }
  steps.push_back(std::move(multiply));
  return steps;
}

std::string matmul_key(const lower::Group& group, const MatmulPlan& plan) {
  return fmt::format("{} {}x{} blocks {} {} pack {} {}\n{}", plan.name, plan.row_tiles, plan.panels,
                     plan.m_blocks, plan.n_blocks, plan.pack_a, static_cast<int>(plan.weights),
                     loop::print(group.kernel));
}

}  // namespace pyc::cpu
