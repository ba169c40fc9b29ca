// Which tile: decisions from sizes alone. None of them changes bits.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "backends/cuda/forms.h"
#include "backends/cuda/generators/product.h"
#include "backends/cuda/kernel_generator.h"
#include "loop/function.h"

namespace pyc::cuda {
namespace {

// What a block has without asking for more.
constexpr int64_t kTileSharedBytes = int64_t{48} << 10;
constexpr int kMostTileThreads = 512;

// Rough facts of the device, for estimates only.
constexpr double kMultiprocessors = 132.0;
constexpr double kFlopsPerNs = 500.0;  // of one multiprocessor
constexpr double kSlabNs = 450.0;      // until a slab of memory is there and joined in
constexpr double kWarpsToFill = 8.0;   // of a multiprocessor
constexpr int64_t kRegisters = 65536;
// A kernel's begin and end, and a join of teams.
constexpr double kBlockNs = 1500.0;
constexpr double kJoinNs = 150.0;

constexpr int64_t kMostExtent = int64_t{1} << 28;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What share of the device's rate a thread's piece allows: the smaller, the more it loads for each
// product.
double efficiency(const ProductTile& t) {
  const int area = t.thread_rows * t.thread_columns;
  return area >= 64 ? 0.75 : area >= 32 ? 0.6 : 0.45;
}

double time_of(const lower::Contraction& c, const ProductTile& t) {
  const int64_t blocks = ceil_div(c.m, t.rows) * ceil_div(c.n, t.columns) * c.batch_size();
  const int64_t segments = ceil_div(c.k, kProductSegment);
  const int64_t rounds = ceil_div(segments, t.teams);
  const int64_t slabs = t.teams == 1 ? ceil_div(c.k, t.depth)
                                     : rounds * ceil_div(std::min(c.k, kProductSegment), t.depth);
  const double busiest = static_cast<double>(ceil_div(blocks, int64_t(kMultiprocessors)));
  // Accumulators, totals, fragments and addresses.
  const int64_t registers = t.thread_rows * t.thread_columns * (t.teams + 1) / t.teams + 48;
  const double resident =
      std::min({busiest, static_cast<double>(kRegisters / (registers * t.threads())),
                static_cast<double>((int64_t{220} << 10) / t.shared_bytes())});
  const double warps = std::max(resident, 1.0) * t.threads() / 32.0;
  const double rate = kFlopsPerNs * efficiency(t) * std::min(1.0, warps / kWarpsToFill);
  const double slab_flops = 2.0 * t.rows * t.columns * t.depth * t.teams;
  const double all = busiest * static_cast<double>(slabs) * slab_flops / rate;
  const double waits =
      std::ceil(busiest / std::max(resident, 1.0)) * static_cast<double>(slabs) * kSlabNs;
  const double joins = t.teams > 1 ? static_cast<double>(rounds * t.teams) * kJoinNs : 0.0;
  return kLaunchNs + kBlockNs + std::max(all, waits) + joins;
}

}  // namespace

int64_t ProductTile::shared_bytes() const {
  const int64_t slabs = int64_t{2} * teams * depth * (rows + columns + 8) * 4;
  return slabs + (teams > 1 ? int64_t{rows} * columns * 4 : 0);
}

std::string ProductTile::name() const {
  const std::string size =
      fmt::format("{}x{}x{}_{}x{}", rows, columns, depth, thread_rows, thread_columns);
  return teams == 1 ? size : fmt::format("{}_t{}", size, teams);
}

std::vector<ProductTile> product_tiles() {
  static constexpr std::array<std::array<int, 5>, 13> kShapes = {{{128, 128, 8, 8, 8},
                                                                  {128, 128, 8, 8, 16},
                                                                  {128, 64, 8, 8, 16},
                                                                  {64, 128, 8, 8, 16},
                                                                  {64, 64, 8, 8, 8},
                                                                  {64, 64, 8, 4, 16},
                                                                  {64, 64, 8, 4, 8},
                                                                  {32, 64, 4, 4, 16},
                                                                  {64, 32, 4, 4, 16},
                                                                  {32, 32, 4, 4, 16},
                                                                  {32, 32, 4, 4, 32},
                                                                  {32, 64, 4, 4, 32},
                                                                  {16, 64, 4, 4, 16}}};
  std::vector<ProductTile> out;
  for (const auto& [rows, columns, thread_rows, thread_columns, depth] : kShapes) {
    for (const int teams : {1, 2, 3, 4, 6, 8}) {
      const ProductTile tile{rows, columns, thread_rows, thread_columns, depth, teams};
      if (tile.threads() <= kMostTileThreads && tile.shared_bytes() <= kTileSharedBytes) {
        out.push_back(tile);
      }
    }
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
  if (loop::inlined_operations(c.kernel->pool) > loop::kMaxInlined) return "calls_are_too_long";
  if (c.m > kMostExtent || c.n > kMostExtent || c.k > kMostExtent || c.batch_size() > kMostExtent ||
      c.m * c.n / 256 > kMostExtent / c.batch_size()) {
    return "too_large";
  }
  return "";
}

ProductChoice choose_product(const lower::Group& group) {
  ProductChoice best;
  best.cost_ns = std::numeric_limits<double>::max();
  for (const ProductTile& tile : product_tiles()) {
    const double ns = time_of(*group.contraction, tile);
    if (ns < best.cost_ns) best = {tile, ns};
  }
  const double bytes = static_cast<double>(group.bytes) / kDeviceBytesPerNs;
  best.cost_ns = std::max(best.cost_ns, kLaunchNs + bytes);
  return best;
}

}  // namespace pyc::cuda
