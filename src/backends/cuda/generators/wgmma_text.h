#pragma once

// Text of a product of halves on Hopper's matrix unit (wgmma), in the order `sm90` of
// docs/NUMERICS.md: blocks of 16 ascending, segments of 1024 joined apart.
//
// A block of threads computes tiles of the result, one after the other. Parts of 64 along k pass
// through a ring of stages in shared memory, each row of 128 bytes or, where an operand lies in
// memory along its rows, each k; both with the 128-byte swizzle. What lies outside of an operand is
// +0 in its stage. One group of threads fills the ring, one to three others multiply; the sums pass
// through shared memory once more, and the group's stores run over them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/generators/product_packing.h"
#include "backends/cuda/kernel_text.h"
#include "lower/types.h"

namespace pyc::cuda {

inline constexpr int64_t kWarpThreads = 32;
inline constexpr int64_t kGroupRows = 64;       // of the unit, for 128 threads
inline constexpr int64_t kStageDepth = 64;      // along k
inline constexpr int64_t kStageRowBytes = 128;  // and of the swizzle

// How the result is cut. The unit takes `rows` as its 64-row side; they are rows of the product's
// operand a, or where `swapped` of its operand b, which is for results of few rows.
struct WgmmaTile {
  int64_t rows = 0;     // 64 for each 128 threads, at most 192
  int64_t columns = 0;  // 8 … 256
  bool swapped = false;
  int64_t stages = 4;  // of the ring, at least 3
  bool split = false;  // each segment of k has blocks of its own, which join them
  bool maps = false;   // the device brings both operands by tensor maps, not threads
  // So many groups of 128 threads take whole tiles in turn, of products of one segment: while one
  // multiplies, others store results.
  int64_t turns = 0;
};

// Blocks of 64 rows that one group of threads multiplies.
inline int64_t wgmma_row_blocks(const WgmmaTile& tile) {
  return tile.turns > 0 ? tile.rows / kGroupRows : 1;
}
// Groups of threads that multiply.
inline int64_t wgmma_groups(const WgmmaTile& tile) {
  return tile.turns > 0 ? tile.turns : tile.rows / kGroupRows;
}

// How an operand comes into shared memory.
enum class WgmmaBring : uint8_t {
  kAlongK,     // 16 bytes at a time, neighbours along k: a matrix, or channels of a window
  kAlongRows,  // 16 bytes at a time, neighbours along the operand's rows
  kElements,   // one by one, by the operand's expression
};

struct WgmmaProduct {
  const lower::Group* group = nullptr;
  DType factors = DType::kBF16;
  WgmmaTile tile;
  std::optional<ProductPacking> packing = {};  // of the operand that `group` reads packed

  const lower::Contraction& contraction() const { return *group->contraction; }
};

// Of operand a, or b.
WgmmaBring wgmma_bring(const WgmmaProduct& product, bool of_b);

// Whether both operands are matrices that tensor maps bring to such tiles.
bool wgmma_has_maps(const WgmmaProduct& product);

// Whether a block has the shared memory and its threads the registers for such tiles.
bool wgmma_fits(const WgmmaProduct& product);
// How many blocks a multiprocessor has room for.
int64_t wgmma_resident(const WgmmaProduct& product);
// Of k, in the unit's order.
int64_t wgmma_segments(const WgmmaProduct& product);

// Whether the segments of a tile that is split run together, and one of them joins all.
bool wgmma_together(const WgmmaProduct& product);

// The kernels that compute it, in order: one, or two that share a workspace where the tile is split
// into segments that do not run together. Requires wgmma_fits and a contraction of at least one
// element.
std::vector<KernelText> wgmma_texts(const WgmmaProduct& product, const std::string& symbol);

}  // namespace pyc::cuda
