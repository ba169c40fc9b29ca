#pragma once

// The loops of a sum of products in a named order. Private to lower/.

#include <functional>
#include <vector>

#include "base/matrix_unit.h"
#include "ops/lowering.h"

namespace pyc::lower {

struct UnitSum {
  const MatrixUnit* unit = nullptr;
  DType factors = DType::kBF16;
  int64_t terms = 0;
  // What the blocks are added to, in one segment; not valid: segments from +0, joined ascending.
  loop::Expr start = {};
  // The term at k, which is below `terms`. Called for two loops; statements that a term brings go
  // to `body`.
  std::function<ops::ReduceTerm(loop::Expr k, std::vector<loop::Stmt>& body)> term;
};

struct UnitSumLoop {
  loop::Stmt stmt;
  loop::Expr value;  // after it
};

// Adds the loops to the kernel; the statement is to be put where the value is needed.
UnitSumLoop write_unit_sum(loop::Kernel& kernel, const UnitSum& sum);

}  // namespace pyc::lower
