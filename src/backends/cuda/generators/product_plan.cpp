// Which tile: decisions from sizes alone. None of them changes bits.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "backends/cuda/forms.h"
#include "backends/cuda/generators/product.h"
#include "backends/cuda/generators/product_runs.h"
#include "backends/cuda/kernel_generator.h"

namespace pyc::cuda {
namespace {

// What a block has without asking for more.
constexpr int64_t kTileSharedBytes = int64_t{48} << 10;
constexpr int kMostTileThreads = 512;

// Facts of an H200 and what was measured there, for estimates only.
constexpr int64_t kAllRegisters = 65536;
constexpr int64_t kAllSharedBytes = int64_t{227} << 10;
constexpr double kFmasPerNs = 224.0;  // of one multiprocessor
constexpr double kSlabNs = 284.0;     // of a block, besides its products
constexpr double kTermOfSlabNs = 1.0;
constexpr double kJoinNs = 380.0;     // of one team's sums
constexpr double kTileNs = 1250.0;    // a kernel's begin and end
constexpr double kSplitNs = 2500.0;   // the same of the kernel that joins, and the gap before it
constexpr double kSplitDoubt = 1.25;  // its time was never measured
// What the sums of a split product may take.
constexpr int64_t kMostSplitBytes = int64_t{32} << 20;

constexpr int64_t kMostExtent = int64_t{1} << 28;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What a thread's piece of the tile means: the smaller, the more it loads for each product.
struct PieceFacts {
  double efficiency;
  int64_t registers;
};

PieceFacts facts_of(const ProductTile& t) {
  const int area = t.thread_rows * t.thread_columns;
  if (area >= 64) return {0.97, t.split ? 152 : 208};
  if (area >= 32) return {0.80, t.split ? 96 : 128};
  return {0.60, t.split ? 80 : 88};
}

// What it costs at every slab to compute where an operand's elements are: for four at once, or for
// each by itself.
double computing_factor(const lower::Contraction& c) {
  const auto factor = [&](const lower::Contraction::Operand& o, loop::VarId row, int64_t rows) {
    if (o.form == lower::Contraction::Form::kLinear) return 1.0;
    const loop::Pool& pool = c.kernel->pool;
    const loop::ExprId load = padded_load(pool, o.value, DType::kF32);
    const bool in_runs = load != loop::kNone && (lies_in_runs(pool, load, c.k_var, c.k, 4) ||
                                                 lies_in_runs(pool, load, row, rows, 4));
    return in_runs ? 1.1 : 1.3;
  };
  return std::max(factor(c.a, c.m_var, c.m), factor(c.b, c.n_var, c.n));
}

double time_of(const lower::Contraction& c, const ProductTile& t, double computing) {
  const PieceFacts facts = facts_of(t);
  const int64_t tiles = ceil_div(c.m, t.rows) * ceil_div(c.n, t.columns) * c.batch_size();
  const int64_t segments = ceil_div(c.k, kProductSegment);
  const int64_t blocks = t.split ? tiles * segments : tiles;
  const int64_t rounds = t.split ? 1 : ceil_div(segments, t.teams);
  const int64_t of_segment = ceil_div(std::min(c.k, kProductSegment), t.depth);
  const int64_t slabs = t.teams == 1 && !t.split ? ceil_div(c.k, t.depth) : rounds * of_segment;
  const int64_t resident =
      std::max<int64_t>(1, std::min(kAllRegisters / (facts.registers * t.threads()),
                                    kAllSharedBytes / t.shared_bytes()));
  const double fmas = static_cast<double>(t.teams) * t.rows * t.columns * t.depth;
  const double work = fmas / (kFmasPerNs * facts.efficiency);
  const double joins = t.teams > 1 ? static_cast<double>(rounds * t.teams) * kJoinNs : 0.0;
  // So many blocks at once on one multiprocessor.
  const auto together = [&](int64_t count) {
    const double slab =
        (kSlabNs + kTermOfSlabNs * t.depth + work * static_cast<double>(count)) * computing;
    return count == 0 ? 0.0 : static_cast<double>(slabs) * slab + joins;
  };
  const int64_t of_one = ceil_div(blocks, kMultiprocessors);
  const double second =
      t.split ? kLaunchNs + kSplitNs + 2.0 * static_cast<double>(split_bytes(c)) / kDeviceBytesPerNs
              : 0.0;
  const double fixed = kLaunchNs + kTileNs + second;
  // Two blocks that end together make room for two others in the same place, while those who have
  // one each wait.
  if (resident <= 2 && of_one > resident) {
    return fixed +
           static_cast<double>(ceil_div(blocks, resident * kMultiprocessors)) * together(resident);
  }
  const int64_t rounds_of_all = of_one / resident;
  return fixed + static_cast<double>(rounds_of_all) * together(resident) +
         together(of_one % resident);
}

}  // namespace

int64_t ProductTile::shared_bytes() const {
  const int64_t slabs = int64_t{2} * teams * depth * (rows + columns + 8) * 4;
  return slabs + (teams > 1 ? int64_t{rows} * columns * 4 : 0);
}

std::string ProductTile::name() const {
  const std::string size =
      fmt::format("{}x{}x{}_{}x{}", rows, columns, depth, thread_rows, thread_columns);
  if (split) return size + "_split";
  return teams == 1 ? size : fmt::format("{}_t{}", size, teams);
}

std::vector<ProductTile> product_tiles() {
  static constexpr std::array<std::array<int, 5>, 13> kShapes = {{{128, 128, 8, 8, 16},
                                                                  {128, 64, 8, 8, 16},
                                                                  {64, 128, 8, 8, 16},
                                                                  {64, 64, 8, 4, 16},
                                                                  {32, 64, 8, 4, 16},
                                                                  {64, 32, 8, 4, 16},
                                                                  {32, 32, 8, 4, 16},
                                                                  {32, 32, 8, 4, 8},
                                                                  {32, 64, 4, 4, 16},
                                                                  {64, 32, 4, 4, 16},
                                                                  {32, 32, 4, 4, 16},
                                                                  {32, 32, 4, 4, 32},
                                                                  {16, 64, 4, 4, 16}}};
  std::vector<ProductTile> out;
  for (const auto& [rows, columns, thread_rows, thread_columns, depth] : kShapes) {
    for (const int teams : {1, 2, 3, 4, 6, 8}) {
      const ProductTile tile{rows, columns, thread_rows, thread_columns, depth, teams};
      if (tile.threads() <= kMostTileThreads && tile.shared_bytes() <= kTileSharedBytes) {
        out.push_back(tile);
      }
    }
    out.push_back({rows, columns, thread_rows, thread_columns, depth, 1, true});
  }
  return out;
}

std::string product_rejected(const lower::Group& group) {
  if (!group.contraction) return "no_contraction";
  const lower::Contraction& c = *group.contraction;
  if (group.order != lower::kCanonicalOrder) return "order_not_canonical";
  if (c.dtype != DType::kF32) return "dtype_not_f32";
  if (c.k <= 0) return "k_is_zero";
  if (c.m <= 0 || c.n <= 0 || c.batch_size() <= 0) return "empty";
  if (c.segment != kProductSegment) return "segment_not_256";
  if (c.n_var == loop::kNone) return "no_free_column";
  if (c.kernel->scratch_bytes() != 0) return "has_scratch";
  if (!c.kernel->checks.empty()) return "has_checks";
  if (parameters_of(*c.kernel).size() + 3 > kMostParameters) return "too_many_buffers";
  if (c.m > kMostExtent || c.n > kMostExtent || c.k > kMostExtent || c.batch_size() > kMostExtent ||
      c.m * c.n / 256 > kMostExtent / c.batch_size() / 16) {
    return "too_large";
  }
  return "";
}

ProductChoice choose_product(const lower::Group& group) {
  ProductChoice best;
  best.cost_ns = std::numeric_limits<double>::max();
  const lower::Contraction& c = *group.contraction;
  const double computing = computing_factor(c);
  for (const ProductTile& tile : product_tiles()) {
    if (tile.split && (c.k <= kProductSegment || split_bytes(c) > kMostSplitBytes)) continue;
    const double ns = time_of(c, tile, computing) * (tile.split ? kSplitDoubt : 1.0);
    if (ns < best.cost_ns) best = {tile, ns};
  }
  const double bytes = static_cast<double>(group.bytes) / kDeviceBytesPerNs;
  best.cost_ns = std::max(best.cost_ns, kLaunchNs + bytes);
  return best;
}

}  // namespace pyc::cuda
