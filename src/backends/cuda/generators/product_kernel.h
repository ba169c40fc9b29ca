#pragma once

// A contraction as the texts of its forms take it. Private to the generator.

#include <vector>

#include "loop/loop.h"
#include "lower/types.h"

namespace pyc::cuda {

// The contraction's kernel without calls; its variables are the contraction's.
struct ProductKernel {
  explicit ProductKernel(const lower::Contraction& c);

  loop::Kernel kernel;
  loop::ExprId a = loop::kNone;  // the operands' elements
  loop::ExprId b = loop::kNone;
  std::vector<loop::Store> epilogue;
};

// Whether four elements along k are always one aligned access of a buffer that is aligned itself.
bool is_side_by_side(const lower::Contraction::Operand& operand, int64_t terms);

}  // namespace pyc::cuda
