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
};

inline Registers registers_of(const CodegenTarget& target) {
  if (target.is_aarch64()) return {"neon", 4, 32, 4, 16, 8};
  if (target.avx512) return {"avx512", std::min(16, target.lanes), 32, 2, 10, 12};
  return {"avx2", std::min(8, target.lanes), 16, 2, 10, 6};
}

// What tiles reach on one thread, roughly.
inline double tile_flops_per_ns(const CodegenTarget& target) {
  constexpr double kPerLane = 16.0;
  const int native = registers_of(target).native_lanes;
  return kPerLane * (target.is_aarch64() ? native : native * 0.75);
}

}  // namespace pyc::cpu
