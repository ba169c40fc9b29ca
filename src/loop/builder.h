#pragma once

// Operators over Loop IR expressions, so that the definitions of ops and functions read like
// formulas. An Expr is a handle: a pool and an id.

#include <limits>

#include "base/status.h"
#include "loop/loop.h"

namespace pyc::loop {

struct Expr {
  Pool* pool = nullptr;
  ExprId id = kNone;

  DType dtype() const { return pool->dtype(id); }
  bool valid() const { return id != kNone; }
};

inline Expr constant(Pool& p, DType t, double v) {
  return {&p, p.constant(t, word_from_double(v, t))};
}
inline Expr constant_int(Pool& p, DType t, int64_t v) {
  return {&p, p.constant(t, word_from_int(v, t))};
}
// The constant whose bit pattern is `bits`.
inline Expr constant_bits(Pool& p, DType t, Word bits) { return {&p, p.constant(t, bits)}; }
// An i64 constant, for indices.
inline Expr index(Pool& p, int64_t v) { return {&p, p.integer(v)}; }

inline Expr make(Op op, Expr a) { return {a.pool, a.pool->unary(op, a.id)}; }
inline Expr make(Op op, Expr a, Expr b) { return {a.pool, a.pool->binary(op, a.id, b.id)}; }

// A constant of x's dtype.
inline Expr like(Expr x, double v) { return constant(*x.pool, x.dtype(), v); }

inline Expr operator+(Expr a, Expr b) { return make(Op::kAdd, a, b); }
inline Expr operator-(Expr a, Expr b) { return make(Op::kSub, a, b); }
inline Expr operator*(Expr a, Expr b) { return make(Op::kMul, a, b); }
inline Expr operator/(Expr a, Expr b) { return make(Op::kDiv, a, b); }
inline Expr operator-(Expr a) { return make(Op::kNeg, a); }
inline Expr operator+(Expr a, double b) { return a + like(a, b); }
inline Expr operator-(Expr a, double b) { return a - like(a, b); }
inline Expr operator*(Expr a, double b) { return a * like(a, b); }
inline Expr operator/(Expr a, double b) { return a / like(a, b); }
inline Expr operator&(Expr a, Expr b) { return make(Op::kAnd, a, b); }
inline Expr operator|(Expr a, Expr b) { return make(Op::kOr, a, b); }
inline Expr operator^(Expr a, Expr b) { return make(Op::kXor, a, b); }
inline Expr operator~(Expr a) { return make(Op::kNot, a); }
inline Expr shl(Expr a, Expr b) { return make(Op::kShl, a, b); }
inline Expr shr(Expr a, Expr b) { return make(Op::kShr, a, b); }
inline Expr rem(Expr a, Expr b) { return make(Op::kRem, a, b); }
inline Expr floor_div(Expr a, Expr b) { return make(Op::kFloorDiv, a, b); }
inline Expr floor_mod(Expr a, Expr b) { return make(Op::kFloorMod, a, b); }
inline Expr min(Expr a, Expr b) { return make(Op::kMin, a, b); }
inline Expr max(Expr a, Expr b) { return make(Op::kMax, a, b); }
inline Expr eq(Expr a, Expr b) { return make(Op::kEq, a, b); }
inline Expr ne(Expr a, Expr b) { return make(Op::kNe, a, b); }
inline Expr lt(Expr a, Expr b) { return make(Op::kLt, a, b); }
inline Expr le(Expr a, Expr b) { return make(Op::kLe, a, b); }
inline Expr gt(Expr a, Expr b) { return lt(b, a); }
inline Expr ge(Expr a, Expr b) { return le(b, a); }
inline Expr abs(Expr a) { return make(Op::kAbs, a); }
inline Expr sqrt(Expr a) { return make(Op::kSqrt, a); }
inline Expr floor(Expr a) { return make(Op::kFloor, a); }
inline Expr ceil(Expr a) { return make(Op::kCeil, a); }
inline Expr trunc(Expr a) { return make(Op::kTrunc, a); }
inline Expr round_even(Expr a) { return make(Op::kRoundEven, a); }
inline Expr fma(Expr a, Expr b, Expr c) { return {a.pool, a.pool->fma(a.id, b.id, c.id)}; }
inline Expr select(Expr cond, Expr a, Expr b) {
  return {a.pool, a.pool->select(cond.id, a.id, b.id)};
}
inline Expr convert(Expr a, DType to) { return {a.pool, a.pool->convert(a.id, to)}; }
inline Expr bitcast(Expr a, DType to) { return {a.pool, a.pool->bitcast(a.id, to)}; }
// x with its NaNs replaced by the one canonical NaN.
inline Expr canonical_nan(Expr x) {
  if (!is_float(x.dtype())) return x;
  const Expr wide = convert(x, compute_dtype(x.dtype()));
  return select(ne(wide, wide), like(x, std::numeric_limits<double>::quiet_NaN()), x);
}
inline Expr table_load(Pool& p, uint32_t table, Expr index) {
  return {&p, p.table_load(table, index.id)};
}

}  // namespace pyc::loop
