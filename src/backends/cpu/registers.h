#pragma once

// What a target's registers allow tiles to be.

#include <algorithm>

#include "backends/cpu/codegen.h"

namespace pyc::cpu {

struct Registers {
  const char* isa;
  int native_lanes;  // of the registers that are used
  int count;         // of vector registers
  int per_cycle;     // fmas
  int in_flight;     // fmas that hide their latency; a tile with fewer accumulators waits
  int rows;          // of the largest tile
  // What a step of k takes in a tile of f32, in fmas, as `pyc tune` measured it: with too few
  // accumulators, and more for each vector of B beyond two, which come from the second-level cache.
  double least;
  double per_vector;
  // What tiles of at most two vectors take beside wider ones, of whose loads fewer are rows'.
  double narrow;
};

inline Registers registers_of(const CodegenTarget& target) {
  if (target.is_aarch64()) return {"neon", 4, 32, 4, 16, 8, 15.5, 1.15, 1.0};
  if (target.avx512) return {"avx512", std::min(16, target.lanes), 32, 2, 10, 12, 10.0, 0.0, 1.04};
  return {"avx2", std::min(8, target.lanes), 16, 2, 10, 6, 10.0, 0.0, 1.0};
}

// What tiles reach on one thread, roughly.
inline double tile_flops_per_ns(const CodegenTarget& target) {
  constexpr double kPerLane = 16.0;
  const int native = registers_of(target).native_lanes;
  return kPerLane * (target.is_aarch64() ? native : native * 0.75);
}

}  // namespace pyc::cpu
