// Which tiles fit the registers, and which of them are likely to be the fastest.

#include "backends/cpu/matmul_tiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/matmul_bytes.h"
#include "backends/cpu/registers.h"

namespace pyc::cpu {
namespace {

// Tiles are offered whose work is at most this much of the least: by so much the count of their
// operations has been seen to be wrong.
constexpr double kLikelyWork = 1.25;
constexpr size_t kLikelyTiles = 3;

// So many rows make use of panels of three and four vectors.
constexpr int64_t kRowsForWideTiles = 48;
// Of so many panels the last may be partly empty.
constexpr int64_t kManyPanels = 100;
// What such a panel may take of the second-level cache, beside the one to come and the rows.
constexpr int64_t kWidePanelBytes = 768 << 10;
// Panels of two vectors that are as long had better be of one.
constexpr int64_t kTallPanelBytes = 512 << 10;
constexpr int kMostTallRows = 28;

// Work that is worth the time to make code for tiles of two heights: a millisecond of a core.
constexpr int64_t kTwoHeightsFlops = 64 << 20;

// Smaller B are done before a second thread has begun.
constexpr int64_t kSharedBytes = 256 << 10;

// Most rows a tile of `columns` columns can have without spilling. On aarch64 a row of A takes a
// register; on x86 rows are broadcast from memory.
int most_rows(const Registers& r, bool by_lanes, int columns) {
  const int vectors = columns / r.native_lanes;
  if (!by_lanes) {
    // One row takes its B straight from memory.
    if (2 * vectors >= r.count) return vectors + 4 <= r.count ? 1 : 0;
    return std::min(r.rows, (r.count - vectors - 1) / vectors);
  }
  if (vectors >= r.in_flight) return 1;
  if (vectors >= r.in_flight / 2) return 2;
  return std::min(r.rows, (r.count - 1 - vectors) / (vectors + 1));
}

// How many tiles of at most `most` rows, if possible all alike and of no less than `least`, since
// code for one kind of tile takes half as long to make; and as few as can be, where that is another
// number and `both`.
std::vector<int64_t> tile_counts(int64_t m, int64_t least, int64_t most, bool both) {
  const int64_t fewest = ceil_div(m, most);
  for (int64_t rows = most; rows >= least; --rows) {
    if (m % rows != 0) continue;
    if (m / rows == fewest) break;
    return both ? std::vector<int64_t>{m / rows, fewest} : std::vector<int64_t>{m / rows};
  }
  return {fewest};
}

// Whether tiles of three and four vectors may be better than those of two: few rows use a panel too
// seldom, and few terms that are evaluated cost more where fewer rows are so at once. Beyond that
// the number of rows does not decide, so that the sizes of an open graph share packed weights.
bool takes_wide_tiles(const Registers& r, const MatmulPlan& p) {
  const bool few_terms = p.rows == MatmulPlan::Rows::kComputed && p.k < kMatmulSegment;
  return r.narrow > 1.0 && !p.of_bytes() && p.m >= kRowsForWideTiles && !few_terms;
}

// Whether tiles of one vector and many rows are better: of long panels two do not stay in the
// second-level cache, and few tiles go through each of them. Rows that are read where they lie
// gained nothing.
bool takes_tall_tiles(const Registers& r, const MatmulPlan& p) {
  const bool far = 4 * p.k * 2 * r.native_lanes >= kTallPanelBytes;
  const bool few = p.m > r.rows && p.m <= 2 * kMostTallRows;
  return r.narrow > 1.0 && p.rows == MatmulPlan::Rows::kComputed && !p.of_bytes() && few && far;
}

// The tiles that fit the registers, with their work over all of m and n: each takes as long as its
// fmas, their latency, or its part of B to come from the second-level cache, about one vector a
// cycle. `by_segment`: long rows go by segments.
std::vector<Tile> possible_tiles(const CodegenTarget& target, const MatmulPlan& p,
                                 bool by_segment) {
  const Registers r = registers_of(target);
  const int64_t depth = by_segment ? kMatmulSegment : p.k;
  const bool wide = takes_wide_tiles(r, p);
  const bool tall = !by_segment && takes_tall_tiles(r, p);
  const bool in_twos = p.unit == ByteUnit::kMmla;
  const int unit = std::max(r.native_lanes, target.lanes);
  std::vector<Tile> out;
  constexpr int kUnits[] = {2, 1, 3, 16, 8, 4};
  constexpr int kWideUnits[] = {3, 4, 2, 1, 16, 8};
  for (const int units : wide ? kWideUnits : kUnits) {
    const int columns = units * unit;
    const bool is_tall = tall && units == 1;
    int most = in_twos   ? most_byte_rows(columns)
               : is_tall ? kMostTallRows
                         : most_rows(r, target.is_aarch64(), columns);
    if (most < 1) continue;
    const int vectors = columns / r.native_lanes;
    const double least = p.of_bytes() ? r.in_flight : r.least;
    const double more = p.of_bytes() ? 0.0 : r.per_vector * std::max(0, vectors - 2);
    const bool is_wide = wide && (units == 3 || units == 4);
    // More accumulators than those of the largest tile of two vectors leave no room to look ahead.
    if (is_wide) most = std::min(most, 2 * r.rows / vectors);
    const bool near = 4 * depth * columns <= kWidePanelBytes;
    const bool full = p.n % columns == 0 || p.n >= kManyPanels * columns;
    if (is_wide && (!full || !near)) continue;
    const double narrow = (wide || tall) && !is_wide && !is_tall ? r.narrow : 1.0;
    const auto steps = [&](int tile_rows) {
      const double fmas = p.packed_rows(tile_rows) * vectors + more;
      return std::max({fmas, least, static_cast<double>(vectors * r.per_cycle)});
    };
    const bool is_long = 2 * p.batch * p.m * p.n * p.k >= kTwoHeightsFlops;
    const int64_t most_here = std::min<int64_t>(most, p.m);
    const int64_t least_here = is_wide ? most_here - 1 : ceil_div(2 * most_here, 3);
    std::vector<int64_t> counts = tile_counts(p.m, least_here, most_here, is_long);
    // Few rows: what the tiles read of B takes as long as their fmas, and fewer tiles read less.
    if (by_segment && !wide) std::ranges::reverse(counts);
    for (const int64_t tiles : counts) {
      const auto rows = static_cast<int>(ceil_div(p.m, tiles));
      const int64_t tall_tiles = p.m - tiles * (rows - 1);
      const double work = narrow * static_cast<double>(ceil_div(p.n, columns)) *
                          (static_cast<double>(tall_tiles) * steps(rows) +
                           static_cast<double>(tiles - tall_tiles) * steps(rows - 1));
      out.push_back({rows, columns, tiles, tall_tiles, work});
    }
  }
  return out;
}

// The same of tile registers, in cycles: a product of two registers takes 16, to load one 8, and a
// sum waits 52 for the one before. What lies behind the rows is computed too.
std::vector<Tile> possible_amx_tiles(const MatmulPlan& p) {
  struct Shape {
    int rows;
    int columns;
  };
  constexpr Shape kShapes[] = {{2, 2}, {1, 4}, {2, 1}, {1, 2}, {1, 1}};
  constexpr double kProduct = 16.0;
  constexpr double kLoad = 8.0;
  constexpr double kLatency = 52.0;
  constexpr int kLowest = 4;  // rows that a tile may have less than the most
  std::vector<Tile> out;
  for (const Shape& s : kShapes) {
    const int columns = s.columns * kAmxColumns;
    const int64_t most = std::min<int64_t>(s.rows * kAmxRows, p.m);
    if (s.rows > 1 && p.m <= kAmxRows) continue;
    const double step =
        std::max({s.rows * s.columns * kProduct, (s.rows + s.columns) * kLoad, kLatency});
    for (const int64_t tiles : tile_counts(p.m, most - kLowest, most, true)) {
      const auto rows = static_cast<int>(ceil_div(p.m, tiles));
      const double work = step * static_cast<double>(tiles * ceil_div(p.n, columns));
      out.push_back({rows, columns, tiles, p.m - tiles * (rows - 1), work});
    }
  }
  return out;
}

}  // namespace

std::vector<Tile> likely_tiles(const CodegenTarget& target, const MatmulPlan& p, int threads,
                               bool by_segment) {
  std::vector<Tile> tiles =
      p.unit == ByteUnit::kAmx ? possible_amx_tiles(p) : possible_tiles(target, p, by_segment);
  const bool is_large = 4 * p.batch * p.n * p.k >= kSharedBytes;
  for (Tile& t : tiles) {
    const int64_t tasks = p.batch * t.tiles * ceil_div(p.n, t.columns);
    if (is_large && tasks < threads) {
      t.work *= static_cast<double>(threads) / static_cast<double>(tasks);
    }
  }
  size_t best = 0;
  for (size_t i = 1; i < tiles.size(); ++i) {
    if (tiles[i].work < tiles[best].work * 0.97) best = i;
  }
  std::rotate(tiles.begin(), tiles.begin() + static_cast<std::ptrdiff_t>(best),
              tiles.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  std::stable_sort(tiles.begin() + 1, tiles.end(),
                   [](const Tile& a, const Tile& b) { return a.work < b.work; });
  const double most = tiles.front().work * kLikelyWork;
  std::erase_if(tiles, [&](const Tile& t) { return t.work > most; });
  if (tiles.size() > kLikelyTiles) tiles.resize(kLikelyTiles);
  return tiles;
}

void take_tile(const CodegenTarget& target, const Tile& tile, MatmulPlan& p) {
  const Registers r = registers_of(target);
  p.lanes = target.lanes;
  p.a_by_lanes = target.is_aarch64();
  p.tile_rows = tile.rows;
  p.tile_columns = tile.columns;
  p.row_tiles = tile.tiles;
  p.tall_tiles = tile.tall;
  p.panels = ceil_div(p.n, p.tile_columns);
  if (p.of_bytes()) {
    p.name = fmt::format("i8_matmul__{}_{}x{}", byte_unit_name(p), p.tile_rows, p.tile_columns);
    return;
  }
  p.name = fmt::format("f32_matmul__{}_{}x{}", r.isa, p.tile_rows, p.tile_columns);
  if (p.lanes != r.native_lanes) p.name += fmt::format("_l{}", p.lanes);
}

}  // namespace pyc::cpu
