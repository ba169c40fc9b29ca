#include "loop/functions.h"
#include "loop/functions_detail.h"

namespace pyc::loop {
namespace detail {
namespace {

// Adding it rounds a small f64 to an integer, which is then in the low bits of the sum.
constexpr double kRound = 0x1.8p52;
constexpr double kLog2E = 0x1.71547652b82fep0;
// ln2 in three pieces; products of the middle one with integers below 2^13 are exact.
constexpr double kLn2Hi = 0x1.62e42fefa39efp-1;
constexpr double kLn2Mid = 0x1.abc9e3b398p-56;
constexpr double kLn2Lo = 0x1.f97b57a079a19p-103;

// (exp(r) - 1 - r - r²/2) / r³ and (exp(r) - 1 - r) / r² for |r| <= ln2/2.
constexpr double kExpWide[] = {0x1.5555555555556p-3,  0x1.5555555555556p-5,  0x1.11111111109afp-7,
                               0x1.6c16c16c15eb1p-10, 0x1.a01a01a7c3667p-13, 0x1.a01a01a91532dp-16,
                               0x1.71de0db190b96p-19, 0x1.27e4d50439bf1p-22, 0x1.af38a197c349dp-26,
                               0x1.1f7edc88e689cp-29};
constexpr double kExpNarrow[] = {0x1.fffffffffb11bp-2, 0x1.5555556762e2dp-3,  0x1.5555556ee6ca6p-5,
                                 0x1.1110c63234799p-7, 0x1.6c1651f07520ap-10, 0x1.a15174d52ecb7p-13,
                                 0x1.a15ad369ab482p-16};

// exp(r) - 1 for |r| <= ln2/2.
Pair expm1_reduced(Pair r) {
  const Pair square = two_product(r.hi, r.hi);
  const Expr cubic = square.hi * r.hi * polynomial(r.hi, kExpWide);
  const Pair sum = fast_two_sum(r.hi, square.hi * 0.5);
  const Expr slope = fma(r.lo, sum.hi, r.lo);
  return fast_two_sum(sum.hi, cubic + (fma(square.lo, like(r.hi, 0.5), slope) + sum.lo));
}

Expr expm1_reduced_narrow(Expr r) { return fma(r * r, polynomial(r, kExpNarrow), r); }

// x^n for a power of two n.
Expr power_by_squaring(Expr x, size_t n) {
  for (; n > 1; n /= 2) x = x * x;
  return x;
}

}  // namespace

Expr estrin(Expr x, std::span<const double> c) {
  const size_t n = c.size();
  if (n == 1) return like(x, c[0]);
  const size_t low = std::bit_ceil(n - std::bit_ceil(n) / 2);
  return fma(estrin(x, c.subspan(low)), power_by_squaring(x, low), estrin(x, c.first(low)));
}

Expr power_of_two(Expr n) {
  const Expr bits = bits_of(n + (kRound + 1023));
  return bitcast(shl(bits, int_like(bits, 52)), DType::kF64);
}

Expr scale(Expr y, Expr n) {
  const Expr half = floor(n * 0.5);
  return y * power_of_two(half) * power_of_two(n - half);
}

ExpParts exp_parts(Pair x) {
  const Expr n = round_even(x.hi * kLog2E);
  const Expr first = fma(n, like(n, -kLn2Hi), x.hi);
  const Pair r = two_sum(first, n * -kLn2Mid);
  const Expr tail = r.lo + fma(n, like(n, -kLn2Lo), x.lo);
  return {n, expm1_reduced(fast_two_sum(r.hi, tail))};
}

ExpParts exp_parts_narrow(Expr x) {
  const Expr n = round_even(x * kLog2E);
  const Expr r = fma(n, like(n, -kLn2Mid), fma(n, like(n, -kLn2Hi), x));
  return {n, exactly(expm1_reduced_narrow(r))};
}

Pair expm1_pair(const ExpParts& e) {
  const Expr s = power_of_two(e.n);
  const Pair sum = two_sum(s - 1.0, s * e.u.hi);
  return {sum.hi, fma(s, e.u.lo, sum.lo)};
}

namespace {

// 1 + u, rounded once.
Expr one_plus(Pair u) {
  const Pair sum = fast_two_sum(like(u.hi, 1.0), u.hi);
  return sum.hi + (sum.lo + u.lo);
}

}  // namespace
}  // namespace detail

namespace {

using namespace detail;

// exp(x) = 2^n · exp(r), exp(r) = 1 + (r + r²·q). Below r = -¼ the roundings alone come close to
// 1 ulp, so q is fitted best there.
struct ExpF32 {
  Expr p;    // exp(r)
  Expr n;    // integral
  Expr sum;  // its low bits are those of n + bias
};

// Requires that c is NaN or in [-104, 88.8], which keeps n in [-150, 128].
ExpF32 parts_f32(Expr c, int64_t bias) {
  const double round = 0x1.8p23 + static_cast<double>(bias);  // as above, for f32
  constexpr double kExp[] = {0x1.ffffe4p-2, 0x1.5554ap-3, 0x1.556b14p-5, 0x1.123182p-7,
                             0x1.5d4966p-10};
  const Expr t = fma(c, like(c, 0x1.715476p0), like(c, round));
  const Expr n = t - round;
  const Expr r = fma(n, like(c, 0x1.05c61p-29), fma(n, like(c, -0x1.62e43p-1), c));
  return {fma(r * r, estrin(r, kExp), r) + 1.0, n, t};
}

ExpF32 parts_of_any(Expr x) { return parts_f32(clamp(x, -104.0, 88.8), 2 * 127); }

// Of x <= 0: the low bits of the sum are the exponent of 2^(n + 64), a normal number.
ExpF32 parts_of_nonpositive(Expr x) { return parts_f32(max(x, like(x, -104.0)), 127 + 64); }

// The power is applied in two halves so that denormal results are rounded once and overflow comes
// out as infinity.
Expr exp_f32(Expr x) {
  const ExpF32 e = parts_of_any(x);
  const Expr bits = bits_of(e.sum);
  const Expr half = shl(shr(bits, int_like(bits, 1)), int_like(bits, 23));
  const Expr rest = shl(bits, int_like(bits, 23)) - half;
  return e.p * bitcast(half, DType::kF32) * bitcast(rest, DType::kF32);
}

// The product with 2^(n + 64) is exact, so that the one with 2^-64 alone rounds.
Expr exp_nonpositive_f32(Expr x) {
  const ExpF32 e = parts_of_nonpositive(x);
  const Expr bits = bits_of(e.sum);
  return e.p * bitcast(shl(bits, int_like(bits, 23)), DType::kF32) * 0x1p-64;
}

// 2^n · exp(r) of a clamped argument.
Expr exp_clamped_f64(Expr c) {
  const ExpParts e = exp_parts(exactly(c));
  return scale(one_plus(e.u), e.n);
}

Expr exp_f64(Expr x) { return exp_clamped_f64(clamp(x, -746.0, 710.0)); }
Expr exp_nonpositive_f64(Expr x) { return exp_clamped_f64(max(x, like(x, -746.0))); }

Expr exp2_f64(Expr x) {
  const Expr c = clamp(x, -1080.0, 1025.0);
  const Expr n = round_even(c);
  const Pair ln2{like(x, kLn2Hi), like(x, kLn2Mid)};
  const Pair r = multiply(exactly(c - n), ln2);
  return scale(one_plus(expm1_reduced(fast_two_sum(r.hi, r.lo))), n);
}

Expr exp2_narrow(Expr x) {
  const Expr c = clamp(x, -160.0, 130.0);
  const Expr n = round_even(c);
  return (expm1_reduced_narrow((c - n) * kLn2Hi) + 1.0) * power_of_two(n);
}

// 2^n · (1 + u) - 1 = b · (a·u + (a - 1/b)), where 2^n = a·b in halves.
Expr expm1_f64(Expr x) {
  const ExpParts e = exp_parts(exactly(clamp(x, -60.0, 710.0)));
  const Expr half = floor(e.n * 0.5);
  const Expr a = power_of_two(half);
  const Expr rest = e.n - half;
  const Pair whole = two_sum(a, -power_of_two(-rest));
  const Pair sum = two_sum(whole.hi, a * e.u.hi);
  const Expr y = (sum.hi + fma(a, e.u.lo, sum.lo + whole.lo)) * power_of_two(rest);
  return with_sign(abs(y), x);
}

Expr expm1_narrow(Expr x) {
  const ExpParts e = exp_parts_narrow(clamp(x, -60.0, 130.0));
  const Expr s = power_of_two(e.n);
  return with_sign(abs(fma(s, e.u.hi, s - 1.0)), x);
}

}  // namespace

namespace definition {

Expr exp(Expr x) { return is_f32(x) ? exp_f32(x) : exp_f64(x); }
Expr exp_nonpositive(Expr x) { return is_f32(x) ? exp_nonpositive_f32(x) : exp_nonpositive_f64(x); }
Expr exp2(Expr x) { return is_f32(x) ? narrow(exp2_narrow(widen(x))) : exp2_f64(x); }
Expr expm1(Expr x) { return is_f32(x) ? narrow(expm1_narrow(widen(x))) : expm1_f64(x); }

}  // namespace definition

// With no bias the low bits of the sum are n alone, which are added to the exponent's.
Expr exp_normal(Expr x) {
  const ExpF32 e = parts_f32(x, 0);
  const Expr n = bits_of(e.sum);
  return bitcast(bits_of(e.p) + shl(n, int_like(n, 23)), DType::kF32);
}

ScaledExp scaled_exp(Expr x) {
  const ExpF32 e = parts_of_any(x);
  return {e.p, e.n};
}

ScaledExp scaled_exp_nonpositive(Expr x) {
  const ExpF32 e = parts_of_nonpositive(x);
  return {e.p, e.n};
}

}  // namespace pyc::loop
