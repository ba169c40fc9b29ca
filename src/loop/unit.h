#pragma once

// The arithmetic of a matrix unit's block (base/matrix_unit.h) as functions of Loop IR, all in
// integers, so that every backend computes it. A sum of products in a unit's order is then
//   for each block:  exponent and special of every product, the largest and the union of them;
//                    e = scale(acc, largest);  addend(a, b, e) of every product, their sum;
//                    acc = result(acc, union, finite(acc, sum, e))
// A factor is the i64 of its bits.

#include <memory>

#include "base/matrix_unit.h"
#include "loop/builder.h"

namespace pyc::loop {

class UnitBlock {
 public:
  // For factors of `type`, which the unit covers. Functions are called from `pool`.
  UnitBlock(Pool& pool, const MatrixUnit& unit, DType type);

  // The bits of x, which has the factors' type or is converted from it.
  Expr factor(Expr x) const;
  Expr exponent(Expr a, Expr b) const { return call(exponent_, a, b); }
  Expr special(Expr a, Expr b) const { return call(special_, a, b); }
  Expr scale(Expr acc, Expr largest) const { return call(scale_, acc, largest); }
  Expr addend(Expr a, Expr b, Expr scale) const { return call(addend_, a, b, scale); }
  Expr finite(Expr acc, Expr sum, Expr scale) const { return call(finite_, acc, sum, scale); }
  Expr result(Expr acc, Expr special, Expr finite) const {
    return call(result_, acc, special, finite);
  }

 private:
  Expr call(uint32_t function, Expr a, Expr b, Expr c = {}) const {
    return {pool_, pool_->call(function, a.id, b.id, c.id)};
  }

  Pool* pool_;
  DType type_;
  uint32_t exponent_;
  uint32_t special_;
  uint32_t scale_;
  uint32_t addend_;
  uint32_t finite_;
  uint32_t result_;
};

}  // namespace pyc::loop
