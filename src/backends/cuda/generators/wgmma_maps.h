#pragma once

// How an operand of a product comes to shared memory by a tensor map.

#include <optional>
#include <string>

#include "backends/cuda/generators/wgmma_text.h"
#include "backends/cuda/tensor_map.h"
#include "loop/loop.h"

namespace pyc::cuda {

// One side of a stage: `rows` rows by `depth` along k.
struct MappedSide {
  const loop::Pool* pool = nullptr;
  loop::ExprId load = loop::kNone;  // an element
  loop::VarId row_var = loop::kNone;
  loop::VarId k_var = loop::kNone;
  int64_t extent = 0;  // of the rows
  int64_t k = 0;
  int64_t rows = 0;  // of a tile
  int64_t depth = 0;
  bool along_rows = false;  // neighbours in memory are neighbours along the rows
};

// The side that operand a or b of a product is, whose element is `load` of that pool.
MappedSide side_of_stage(const loop::Pool& pool, loop::ExprId load, const WgmmaProduct& product,
                         bool of_b);

// The map of the side, but for its buffer's number; nothing where it is no matrix.
std::optional<TensorMap> map_of(const MappedSide& side);

// Statements that begin to bring rows `first` … and `t * depth` … to `to` (text), counted by
// `gate`.
std::string map_copies(const MappedSide& side, const std::string& map, const std::string& first,
                       const std::string& to, const std::string& gate);

// What they call:
//   PYC_MAP                                 a kernel's parameter that is a map
//   PYC_MAPPED(name, maps)                  so many are the last parameters of that kernel
//   pyc_map_copy(to, map, x, y, gate)       begins to bring the box at column x and row y
//   pyc_gate_expect_bytes(at, bytes)        arrives, and the turn ends after so many bytes
//   pyc_gates_ready()                       behind pyc_gate_init, before a barrier
std::string map_prelude();

}  // namespace pyc::cuda
