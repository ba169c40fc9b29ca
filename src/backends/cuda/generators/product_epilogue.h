#pragma once

// What is done with a product's sums: the group's stores. Private to the generator.

#include <string>
#include <vector>

#include "backends/cuda/emitter.h"
#include "backends/cuda/generators/product_kernel.h"

namespace pyc::cuda {

// Four sums side by side in a row, from column `n` on, a multiple of four. In the scope where the
// variable of rows is declared; `sums` are four floats, aligned to 16 bytes. Loads and stores are
// of 16 bytes where all four elements lie so.
std::string quad_epilogue(Emitter& emitter, const lower::Contraction& c,
                          const ProductKernel& product, const std::string& sums,
                          const std::vector<bool>& unaligned);

}  // namespace pyc::cuda
