#pragma once

// Float types of 8 bits that saturate only when asked to.

#include "ops/lowering.h"

namespace pyc::ops {

// Their largest number; 0 for other types.
constexpr double largest_fp8(DType t) {
  switch (t) {
    case DType::kF8E4M3FN:
      return 448.0;
    case DType::kF8E4M3FNUZ:
      return 240.0;
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
      return 57344.0;
    default:
      return 0.0;
  }
}

// x (f32 or f64) within the numbers of `t`, if it is such a type.
inline Expr within_fp8(Expr x, DType t) {
  const double limit = largest_fp8(t);
  if (limit == 0.0) return x;
  return min(max(x, like(x, -limit)), like(x, limit));
}

}  // namespace pyc::ops
