#include "loop/functions.h"
#include "loop/functions_detail.h"

namespace pyc::loop {
namespace {

using namespace detail;

// |x|^y for finite |x| > 0 from y·log|x|; `log` is ±inf for |x| = inf and 0, and NaN for NaN.
Expr power(Expr y, Pair log) {
  const Pair p = two_product(y, log.hi);
  const Expr c = clamp(p.hi, -760.0, 760.0);
  const Expr inside = eq(c, p.hi);
  const ExpParts e = exp_parts({c, select(inside, fma(y, log.lo, p.lo), like(y, 0.0))});
  const Pair sum = fast_two_sum(like(y, 1.0), e.u.hi);
  return scale(sum.hi + (sum.lo + e.u.lo), e.n);
}

Expr power_narrow(Expr y, Expr log) {
  const ExpParts e = exp_parts_narrow(clamp(y * log, -200.0, 200.0));
  return (e.u.hi + 1.0) * power_of_two(e.n);
}

// The cases that depend on signs and on whether y is an odd integer (IEEE 754, 9.2.1).
Expr pow_with(Expr x, Expr y, bool wide) {
  const Expr one = like(x, 1.0);
  const Expr zero = like(x, 0.0);
  const Expr inf = like(x, kInf);
  const Expr a = abs(x);
  const LogParts parts = wide ? log_parts(exactly(a)) : log_parts_narrow(exactly(a));
  Pair log = log_pair(parts);
  if (!wide) log.hi = value(log);
  log.hi = select(eq(a, zero), -inf, select(lt(a, inf), log.hi, a));
  const Expr magnitude = wide ? power(y, log) : power_narrow(y, log.hi);

  const Expr integral = eq(floor(y), y);
  const Expr half = y * 0.5;
  const Expr odd = integral & ne(floor(half), half);
  const Expr negative = lt(bits_of(x), int_like(bits_of(x), 0)) & odd;
  const Expr real = select(negative, -magnitude, magnitude);
  const Expr no_value = lt(x, zero) & lt(-inf, x) & ~integral;
  const Expr result = select(no_value, like(x, kNaN), real);
  const Expr is_one = eq(x, one) | eq(y, zero) | (eq(a, one) & eq(abs(y), inf));
  return select(is_one, one, result);
}

}  // namespace

Expr pow(Expr x, Expr y) {
  if (is_f32(x)) return narrow(pow_with(widen(x), widen(y), false));
  return pow_with(x, y, true);
}

}  // namespace pyc::loop
