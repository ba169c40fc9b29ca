#include "loop/functions.h"
#include "loop/functions_detail.h"

namespace pyc::loop {
namespace {

using namespace detail;

// As in exp of f32: the bits of c·log2(e) + kRoundF32 + bias hold n + bias.
constexpr double kRoundF32 = 0x1.8p23;

// Below 0.9 an odd polynomial; above 1 - 2 / (exp(2x) + 1), where exp(2x) = 2^n · (1 + 2u).
Expr tanh_f32(Expr x) {
  // Without the first term, -0x1.55554ep-2: it is added last, which costs less accuracy.
  constexpr double kSmall[] = {0x1.110f38p-3,  -0x1.b9ca4ap-5, 0x1.62f1e8p-6,
                               -0x1.0ed84ap-7, 0x1.52a086p-9,  -0x1.ddecaep-12};
  constexpr double kExp[] = {0x1.000004p0, 0x1.55548ep-1, 0x1.5551d2p-2, 0x1.123b52p-3,
                             0x1.6f76aap-5};
  constexpr int64_t kBias = 127;
  const Expr a = abs(x);
  const Expr z = x * x;
  const Expr slope = fma(estrin(z, kSmall), z, like(x, -0x1.55554ep-2));
  const Expr small = fma(a * z, slope, a);
  const Expr c = min(a, like(x, 9.1));
  const Expr t = fma(c, like(x, 0x1.715476p1), like(x, kRoundF32 + kBias));
  const Expr n = t - (kRoundF32 + kBias);
  const Expr r = fma(n, like(x, 0x1.05c61p-30), fma(n, like(x, -0x1.62e43p-2), c));
  const Expr u = fma(r * r, estrin(r, kExp), r);
  const Expr bits = bits_of(t);
  const Expr s = bitcast(shl(bits, int_like(bits, 23)), DType::kF32);
  const Expr d = fma(s, u, fma(s, like(x, 0.5), like(x, 0.5)));
  const Expr large = like(x, 1.0) - like(x, 1.0) / d;
  return with_sign(select(lt(a, like(x, 0.9)), small, large), x);
}

Expr tanh_f64(Expr x) {
  const Expr a = min(abs(x), like(x, 22.0));
  const Pair m = expm1_pair(exp_parts(exactly(a + a)));
  return with_sign(value(divide(m, add(like(x, 2.0), m))), x);
}

// 2^n · (1 + u) / 2, for where exp(-|x|) no longer counts.
Expr half_exp(const ExpParts& e) {
  const Pair sum = fast_two_sum(like(e.n, 1.0), e.u.hi);
  return scale(sum.hi + (sum.lo + e.u.lo), e.n - 1.0);
}

// From this n of exp(x) = 2^n · (1 + u) on, exp(-x) is below 2^-60 · exp(x).
constexpr double kManyBits = 30.0;

// (m + m / (m + 1)) / 2 with m = exp(|x|) - 1.
Expr sinh_f64(Expr x) {
  const ExpParts e = exp_parts(exactly(min(abs(x), like(x, 712.0))));
  const Pair m = expm1_pair({min(e.n, like(x, kManyBits)), e.u});
  const Pair q = divide(m, add(like(x, 1.0), m));
  const Pair sum = fast_two_sum(m.hi, q.hi);
  const Expr small = (sum.hi + (sum.lo + (m.lo + q.lo))) * 0.5;
  return with_sign(select(lt(e.n, like(x, kManyBits)), small, half_exp(e)), x);
}

Expr cosh_f64(Expr x) {
  const ExpParts e = exp_parts(exactly(min(abs(x), like(x, 712.0))));
  const Expr s = power_of_two(min(e.n, like(x, kManyBits)));
  const Pair sum = fast_two_sum(s, s * e.u.hi);
  const Pair exp{sum.hi, fma(s, e.u.lo, sum.lo)};
  const Pair inverse = divide(exactly(like(x, 1.0)), exp);
  const Pair total = fast_two_sum(exp.hi, inverse.hi);
  const Expr small = (total.hi + (total.lo + (exp.lo + inverse.lo))) * 0.5;
  return select(lt(e.n, like(x, kManyBits)), small, half_exp(e));
}

Expr sinh_narrow(Expr x) {
  const ExpParts e = exp_parts_narrow(min(abs(x), like(x, 95.0)));
  const Expr s = power_of_two(e.n);
  const Expr m = fma(s, e.u.hi, s - 1.0);
  return with_sign((m + m / (m + 1.0)) * 0.5, x);
}

Expr cosh_narrow(Expr x) {
  const ExpParts e = exp_parts_narrow(min(abs(x), like(x, 95.0)));
  const Expr s = power_of_two(e.n);
  const Expr exp = fma(s, e.u.hi, s);
  return (exp + like(x, 1.0) / exp) * 0.5;
}

// The square root of `square` + `tail`; of 0 it is 0.
Pair sqrt_pair(Expr square, Expr tail) {
  const Expr s = sqrt(square);
  const Expr rest = fma(-s, s, square) + tail;
  return {s, rest / max(s + s, like(s, 0x1p-1000))};
}

Pair one_plus_pair(Pair w) { return add(like(w.hi, 1.0), w); }

// log(1 + w), or log(2a) where the argument a is so large that only this counts.
Expr log_of_sum(Expr a, Pair w) {
  const Expr large = lt(like(a, 0x1p30), a);
  const Pair sum = one_plus_pair(w);
  const Expr zero = like(a, 0.0);
  const LogParts l = log_parts({select(large, a, sum.hi), select(large, zero, sum.lo)});
  const Expr y = value(log_pair({l.k + select(large, like(a, 1.0), zero), l.log}));
  return select(lt(a, like(a, kInf)), y, a);
}

// log(a + sqrt(a² + 1)) = log1p(a + a² / (1 + sqrt(a² + 1))).
Expr asinh_f64(Expr x) {
  const Expr a = abs(x);
  const Pair square = two_product(a, a);
  const Pair under = fast_two_sum(max(square.hi, like(x, 1.0)), min(square.hi, like(x, 1.0)));
  const Pair root = sqrt_pair(under.hi, under.lo + square.lo);
  const Pair rest = divide(square, one_plus_pair(root));
  const Pair sum = fast_two_sum(a, rest.hi);
  const Expr y = log_of_sum(a, {sum.hi, sum.lo + rest.lo});
  return with_sign(select(lt(a, like(x, 0x1p-28)), a, y), x);
}

// log(x + sqrt(x² - 1)) = log1p(t + sqrt(t² + 2t)) with t = x - 1.
Expr acosh_f64(Expr x) {
  const Pair t = two_sum(x, like(x, -1.0));
  const Expr twice = t.hi + t.hi;
  const Expr square = fma(t.hi, t.hi, twice);
  const Pair root = sqrt_pair(square, fma(t.hi, t.hi, twice - square));
  const Pair sum = fast_two_sum(root.hi, t.hi);
  const Expr y = log_of_sum(x, {sum.hi, sum.lo + (root.lo + t.lo)});
  return select(lt(x, like(x, 1.0)), like(x, kNaN), y);
}

// log1p(2a / (1 - a)) / 2.
Expr atanh_f64(Expr x) {
  const Expr a = abs(x);
  const Expr one = like(x, 1.0);
  const Pair w = divide(exactly(a + a), fast_two_sum(one, -a));
  const Expr y = value(log_pair(log_parts(one_plus_pair(w)))) * 0.5;
  const Expr inside = select(lt(a, like(x, 0x1p-28)), a, y);
  const Expr edge = select(eq(a, one), like(x, kInf), like(x, kNaN));
  return with_sign(select(lt(a, one), inside, edge), x);
}

Expr log1p_value(Expr w) { return value(log_pair(log_parts_narrow(two_sum(like(w, 1.0), w)))); }

Expr asinh_narrow(Expr x) {
  const Expr a = abs(x);
  const Expr square = a * a;
  const Expr w = a + square / (sqrt(square + 1.0) + 1.0);
  return with_sign(select(lt(a, like(x, kInf)), log1p_value(w), a), x);
}

Expr acosh_narrow(Expr x) {
  const Expr t = x - 1.0;
  const Expr y = log1p_value(t + sqrt(fma(t, t, t + t)));
  return select(lt(x, like(x, 1.0)), like(x, kNaN), select(lt(x, like(x, kInf)), y, x));
}

Expr atanh_narrow(Expr x) {
  const Expr a = abs(x);
  const Expr one = like(x, 1.0);
  const Expr y = log1p_value((a + a) / (one - a)) * 0.5;
  const Expr edge = select(eq(a, one), like(x, kInf), like(x, kNaN));
  return with_sign(select(lt(a, one), y, edge), x);
}

}  // namespace

namespace definition {

Expr tanh(Expr x) { return is_f32(x) ? tanh_f32(x) : tanh_f64(x); }

Expr sigmoid(Expr x) {
  const Expr one = like(x, 1.0);
  const Expr e = loop::exp_nonpositive(-abs(x));
  return select(lt(x, like(x, 0.0)), e, one) / (one + e);
}

Expr sinh(Expr x) { return is_f32(x) ? narrow(sinh_narrow(widen(x))) : sinh_f64(x); }
Expr cosh(Expr x) { return is_f32(x) ? narrow(cosh_narrow(widen(x))) : cosh_f64(x); }
Expr asinh(Expr x) { return is_f32(x) ? narrow(asinh_narrow(widen(x))) : asinh_f64(x); }
Expr acosh(Expr x) { return is_f32(x) ? narrow(acosh_narrow(widen(x))) : acosh_f64(x); }
Expr atanh(Expr x) { return is_f32(x) ? narrow(atanh_narrow(widen(x))) : atanh_f64(x); }

}  // namespace definition
}  // namespace pyc::loop
