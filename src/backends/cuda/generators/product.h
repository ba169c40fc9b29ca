#pragma once

// Products of f32 in tiles, each element the chain of docs/NUMERICS.md: fma within a segment of
// 256, totals of segments joined ascending. Operands are expressions of (batch, row, k), so every
// transposition, window and conversion is one; the epilogue is the group's own. Tile, teams and
// reading change no bit.
//
// A block computes one tile of rows × columns. Its threads are `teams` equal parts; team t sums
// segments t, t + teams, … by itself, and after each round the block joins the teams' sums in
// order, through shared memory. A slab of `depth` steps of k lies in shared memory while the next
// one is on its way to registers.
//
// Where tiles are few, blocks are split by segments instead: each writes its segment's sums to the
// workspace, and a second kernel joins them in order.

#include <string>
#include <vector>

#include "backends/cuda/kernel_text.h"
#include "lower/types.h"

namespace pyc::cuda {

struct ProductTile {
  int rows = 0;
  int columns = 0;
  int thread_rows = 0;  // of one thread; multiples of 4, as thread_columns
  int thread_columns = 0;
  int depth = 0;  // divides 256
  int teams = 1;
  bool split = false;  // one team, which has one segment alone: blocks differ in the segment, too

  int team_threads() const { return rows * columns / (thread_rows * thread_columns); }
  int threads() const { return teams * team_threads(); }
  // Of four neighbours in a row each, of one thread when the tile is shared out to all.
  int quads() const { return (rows * columns / 4 + threads() - 1) / threads(); }
  int64_t shared_bytes() const;
  std::string name() const;  // "128x64x16_8x8", with teams "64x64x8_8x4_t3"
};

inline constexpr int64_t kProductSegment = 256;

// All tiles that a block can have, whatever the product.
std::vector<ProductTile> product_tiles();

// Why no tile can have the group; "" if one can.
std::string product_rejected(const lower::Group& group);

// The tile that is estimated to be the fastest, and its time.
struct ProductChoice {
  ProductTile tile;
  double cost_ns = 0.0;
};
ProductChoice choose_product(const lower::Group& group);

// Products of at most 16 rows: a thread has all rows of one column, a warp 32 columns, and the
// warps of a block take segments in turn. Columns come to registers `chunk` terms at a time.
struct ProductStream {
  int teams = 1;
  int chunk = 16;
  std::string name() const;  // "rows_c64_t8"
};
std::string stream_rejected(const lower::Group& group);
ProductStream choose_stream(const lower::Group& group, double* cost_ns);
KernelText stream_text(const lower::Group& group, const ProductStream& stream,
                       const std::string& symbol, const Dialect& dialect,
                       const std::vector<bool>& unaligned);

// What a split product's segments take, and the kernel that joins them.
int64_t split_bytes(const lower::Contraction& c);
KernelText product_join_text(const lower::Group& group, const std::string& symbol,
                             const Dialect& dialect, const std::vector<bool>& unaligned);

// The kernel, for a group that is not rejected. `unaligned` as for kernel_text. Split, it needs the
// other one behind it.
KernelText product_text(const lower::Group& group, const ProductTile& tile,
                        const std::string& symbol, const Dialect& dialect,
                        const std::vector<bool>& unaligned);

}  // namespace pyc::cuda
