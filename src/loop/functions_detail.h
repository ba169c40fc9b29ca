#pragma once

// Building blocks shared by the elementary functions; private to src/loop/functions*.cpp.
//
// "Wide" blocks compute in f64 with results good to well beyond 53 bits, as pairs; they serve the
// f64 functions. "Narrow" blocks compute in plain f64 with about 40 good bits; they serve those f32
// functions that are not worth pure f32 arithmetic.

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "loop/builder.h"

namespace pyc::loop::detail {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

inline bool is_f32(Expr x) { return x.dtype() == DType::kF32; }
inline Expr widen(Expr x) { return convert(x, DType::kF64); }
inline Expr narrow(Expr x) { return convert(x, DType::kF32); }
inline Expr clamp(Expr x, double lo, double hi) { return min(max(x, like(x, lo)), like(x, hi)); }

inline Expr bits_of(Expr x) { return bitcast(x, is_f32(x) ? DType::kI32 : DType::kI64); }
inline Expr int_like(Expr bits, int64_t v) { return constant_int(*bits.pool, bits.dtype(), v); }

inline Expr sign_bits(Expr x) {
  const Expr bits = bits_of(x);
  return bits & int_like(bits, is_f32(x) ? INT32_MIN : INT64_MIN);
}
// `magnitude`, whose sign bit is clear, with the sign of `sign`.
inline Expr with_sign(Expr magnitude, Expr sign) {
  return bitcast(bits_of(magnitude) | sign_bits(sign), magnitude.dtype());
}

// c[0] + c[1]·x + c[2]·x² + …, by Horner's rule.
inline Expr polynomial(Expr x, std::span<const double> c) {
  Expr sum = like(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = fma(sum, x, like(x, c[i]));
  return sum;
}

// The same by Estrin's scheme: the low terms and the high ones, which a power of x brings up, are
// sums of their own that do not wait for each other. The low part is as short as it can be without
// making the longest chain of operations longer.
Expr estrin(Expr x, std::span<const double> c);

// An unevaluated sum of two f64, hi the greater.
struct Pair {
  Expr hi;
  Expr lo;
};

inline Pair exactly(Expr x) { return {x, like(x, 0.0)}; }
inline bool is_constant(Expr x) { return x.pool->node(x.id).op == Op::kConst; }
inline Expr value(Pair x) { return x.hi + x.lo; }

// a + b exactly.
inline Pair two_sum(Expr a, Expr b) {
  const Expr s = a + b;
  const Expr from_b = s - a;
  return {s, (a - (s - from_b)) + (b - from_b)};
}
// The same where |a| >= |b| or a = 0.
inline Pair fast_two_sum(Expr a, Expr b) {
  const Expr s = a + b;
  return {s, b - (s - a)};
}
// a · b exactly, unless it underflows.
inline Pair two_product(Expr a, Expr b) {
  const Expr p = a * b;
  return {p, fma(a, b, -p)};
}
inline Pair add(Expr a, Pair b) {
  const Pair s = two_sum(a, b.hi);
  return {s.hi, s.lo + b.lo};
}
inline Pair multiply(Pair a, Pair b) {
  const Pair p = two_product(a.hi, b.hi);
  return {p.hi, fma(a.lo, b.hi, fma(a.hi, b.lo, p.lo))};
}
inline Pair divide(Pair a, Pair b) {
  const Expr q = a.hi / b.hi;
  const Expr rest = fma(-q, b.hi, a.hi) + fma(-q, b.lo, a.lo);
  return {q, rest / b.hi};
}

// 2^n for an integral n (f64) in [-1022, 1023].
Expr power_of_two(Expr n);
// y · 2^n for an integral n (f64) in [-2000, 2000], rounded once after exact steps.
Expr scale(Expr y, Expr n);

// exp(x) = 2^n · (1 + u) with |u| < 0.42, for |x| < 1500.
struct ExpParts {
  Expr n;
  Pair u;
};
ExpParts exp_parts(Pair x);
// The same, u.lo = 0.
ExpParts exp_parts_narrow(Expr x);
// 2^n · (1 + u) - 1 for n in [-1022, 1023].
Pair expm1_pair(const ExpParts& e);

// x.hi + x.lo = 2^k · m with m in [0.7, 1.42) and log = log(m). x.hi is positive and finite; a
// constant x.lo is taken for 0.
struct LogParts {
  Expr k;
  Pair log;
};
LogParts log_parts(Pair x);
// The same, log.lo = 0.
LogParts log_parts_narrow(Pair x);
// k·ln2 + log(m).
Pair log_pair(const LogParts& l);

// A call of the function of functions.h that has this name.
Expr call_elementary(std::string_view name, Expr x, Expr y = {});

// `y` where x is inside the domain (edge, inf) of a logarithm; -inf, NaN, inf outside.
inline Expr log_edges(Expr x, double edge, Expr y) {
  const Expr inside = select(lt(x, like(x, kInf)), y, x);
  const Expr outside = select(eq(x, like(x, edge)), like(y, -kInf), like(y, kNaN));
  return select(le(x, like(x, edge)), outside, inside);
}

}  // namespace pyc::loop::detail

// What the functions of functions.h stand for.
namespace pyc::loop::definition {

Expr exp(Expr x);
Expr exp_nonpositive(Expr x);
Expr exp2(Expr x);
Expr expm1(Expr x);
Expr log(Expr x);
Expr log2(Expr x);
Expr log1p(Expr x);
Expr sin(Expr x);
Expr cos(Expr x);
Expr tan(Expr x);
Expr asin(Expr x);
Expr acos(Expr x);
Expr atan(Expr x);
Expr sinh(Expr x);
Expr cosh(Expr x);
Expr tanh(Expr x);
Expr asinh(Expr x);
Expr acosh(Expr x);
Expr atanh(Expr x);
Expr erf(Expr x);
Expr sigmoid(Expr x);
Expr pow(Expr x, Expr y);
// x to the power of a constant: what does not depend on it is left out.
Expr pow_constant(Expr x, double y);

}  // namespace pyc::loop::definition
