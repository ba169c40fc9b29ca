#pragma once

// How threads bring an operand of a product of halves to shared memory, where tensor maps do not.
// Private to the generator.

#include <string>

#include "backends/cuda/generators/wgmma_text.h"
#include "loop/loop.h"

namespace pyc::cuda {

// One side of the tile.
struct WgmmaSide {
  loop::ExprId value = loop::kNone;  // of the operand, rounded to the factors' type
  loop::VarId var = loop::kNone;     // of its rows; kNone: there is one
  int64_t extent = 1;
  int64_t rows = 0;  // in a tile
  bool of_b = false;
  WgmmaBring bring = WgmmaBring::kElements;
  int64_t bytes() const { return rows * kStageRowBytes; }
  bool elements() const { return bring == WgmmaBring::kElements; }
  bool along_rows() const { return bring == WgmmaBring::kAlongRows; }
};

struct WgmmaBringing {
  const loop::Kernel& kernel;
  const lower::Contraction& contraction;
  std::string symbol;
  std::string parameters;  // of the kernel's buffers, each with a comma behind it
  int64_t threads = 0;
  bool knows_terms = false;  // all stages are written out
};

// A function SYMBOL_NAME that brings rows first … and k0 … of one side to a place in shared memory,
// 16 bytes a thread and round.
std::string wgmma_bring_function(const WgmmaBringing& all, const WgmmaSide& side,
                                 const std::string& name);

}  // namespace pyc::cuda
