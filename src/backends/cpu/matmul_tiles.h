#pragma once

// The tiles of a product: how many rows and columns stay in registers. Sizes alone decide.

#include <cstdint>
#include <vector>

#include "backends/cpu/matmul.h"

namespace pyc::cpu {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Tile {
  int rows = 0;  // of the tall ones
  int columns = 0;
  int64_t tiles = 0;
  int64_t tall = 0;
  double work = 0.0;
};

// The tile with the least work first; then those that may be faster on the machine, by their work.
// Wide tiles of few rows can be fewer than threads, which then wait for those that have one.
std::vector<Tile> likely_tiles(const CodegenTarget& target, const MatmulPlan& p, int threads,
                               bool by_segment);

// Makes it a plan with that tile.
void take_tile(const CodegenTarget& target, const Tile& tile, MatmulPlan& p);

}  // namespace pyc::cpu
