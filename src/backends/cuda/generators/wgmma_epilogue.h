#pragma once

// What follows a tile's sums. A warp's sums go to shared memory as the unit leaves them with its
// threads and come back by rows, and the group's stores run over them: a piece of 16 rows at a time
// or, where a row of the result would be written in less than a line of memory, of 8. No other warp
// has to wait for that, and the ring goes on. Private to the generator.

#include <string>
#include <vector>

#include "backends/cuda/generators/wgmma_text.h"
#include "loop/loop.h"

namespace pyc::cuda {

struct WgmmaEpilogue {
  const loop::Kernel& kernel;
  const lower::Contraction& contraction;
  const std::vector<bool>& unaligned;
  std::string symbol;
  WgmmaTile tile;
  int64_t row_extent = 0;  // of the result, along the tile's rows
  int64_t column_extent = 0;
  int64_t at = 0;         // in shared memory, wgmma_piece_bytes of it
  int64_t registers = 0;  // of a thread, that may hold what its stores will read
  // Segments that run together, each with its sums from the beginning of its block's shared memory
  // on, pair by pair of its threads. 1: the sums are in `total`.
  int64_t segments = 1;
};

// What the pieces of all warps take.
int64_t wgmma_piece_bytes(const WgmmaTile& tile);
// How many pieces of its sums a warp has.
int64_t wgmma_pieces(const WgmmaTile& tile);

// How many operations an element of the stores takes, roughly. `kernel` has no calls.
int64_t wgmma_operations(const loop::Kernel& kernel);

// Text for all threads that multiply. It knows `thread`, `batch`, `first_row` and `first_column`,
// and `rank` where segments run together: each of their blocks then joins and stores its share.
std::string wgmma_epilogue(const WgmmaEpilogue& epilogue);

// Text for the warp of thread `first`, before the products of a tile: what its stores will read,
// as a residual, is fetched from memory while they run. Of blocks that run together each, `rank`,
// has its share. Empty if there is nothing.
std::string wgmma_prefetches(const WgmmaEpilogue& epilogue, int64_t first, const std::string& rank);

}  // namespace pyc::cuda
