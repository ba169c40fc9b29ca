#pragma once

// Formulas that several activations are made of.

#include "ops/support/elementwise.h"

namespace pyc::ops {

// log(1 + exp(x)); neither overflows nor loses small results.
inline Expr softplus(Expr x) {
  return max(x, like(x, 0.0)) + loop::log1p(loop::exp_nonpositive(-abs(x)));
}

// max(0, min(1, x * alpha + beta)).
inline Expr hard_sigmoid(Expr x, double alpha, double beta) {
  return max(like(x, 0.0), min(like(x, 1.0), x * alpha + beta));
}

}  // namespace pyc::ops
