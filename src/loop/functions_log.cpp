#include "loop/functions.h"
#include "loop/functions_detail.h"

namespace pyc::loop {
namespace detail {
namespace {

// ln2 in two pieces; products of the first with integers below 2^11 are exact.
constexpr double kShortLn2Hi = 0x1.62e42fefa38p-1;
constexpr double kShortLn2Lo = 0x1.ef35793c7673p-45;

// log((1 + s) / (1 - s)) from s^5 and from s^3, in s², for |s| <= (√2-1)/(√2+1).
constexpr double kLogWide[] = {0x1.9999999999999p-2, 0x1.24924924927b3p-2, 0x1.c71c71c67c05fp-3,
                               0x1.745d17bd6aa76p-3, 0x1.3b1380d9a9a2cp-3, 0x1.111c54f775595p-3,
                               0x1.dedf2a240104ap-4, 0x1.e5aaf7032a7c2p-4};
constexpr double kLogNarrow[] = {0x1.555555561e284p-1, 0x1.999996a98dba3p-2, 0x1.249411d0d717ap-2,
                                 0x1.c62b1efc0aa9cp-3, 0x1.9114ee0680718p-3};

struct Reduced {
  Expr k;
  Pair f;  // m - 1
};

// x = 2^k · (1 + f) with 1 + f in [√½, √2).
Reduced reduce(Pair x) {
  constexpr int64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  constexpr int64_t kMantissa = (int64_t{1} << 52) - 1;
  const Expr tiny = lt(x.hi, like(x.hi, 0x1p-1022));
  const Expr bits = bits_of(select(tiny, x.hi * 0x1p54, x.hi));
  const Expr offset = bits - int_like(bits, kSqrtHalf);
  const Expr exponent = convert(shr(offset, int_like(bits, 52)), DType::kF64);
  const Expr k = exponent - select(tiny, like(x.hi, 54.0), like(x.hi, 0.0));
  const Expr mantissa = (offset & int_like(bits, kMantissa)) + int_like(bits, kSqrtHalf);
  const Expr m = bitcast(mantissa, DType::kF64);
  if (is_constant(x.lo)) return {k, exactly(m - 1.0)};
  // Arguments with a tail are sums with 1, so 2^-k need not reach further.
  const Expr tail = x.lo * power_of_two(clamp(-k, -1022.0, 1023.0));
  return {k, fast_two_sum(m - 1.0, tail)};
}

}  // namespace

LogParts log_parts(Pair x) {
  const Reduced r = reduce(x);
  const Expr two_thirds = like(x.hi, 0x1.5555555555555p-1);
  const Pair s = divide(r.f, add(like(x.hi, 2.0), r.f));
  const Pair z = multiply(s, s);
  const Pair coefficient = fast_two_sum(two_thirds, z.hi * polynomial(z.hi, kLogWide));
  const Pair c{coefficient.hi, coefficient.lo + 0x1.5555555555555p-55};
  const Pair cubic = multiply(multiply(s, z), c);
  const Pair sum = fast_two_sum(s.hi + s.hi, cubic.hi);
  return {r.k, fast_two_sum(sum.hi, sum.lo + (cubic.lo + (s.lo + s.lo)))};
}

LogParts log_parts_narrow(Pair x) {
  const Reduced r = reduce(x);
  const Expr s = r.f.hi / (r.f.hi + 2.0);
  const Expr z = s * s;
  return {r.k, exactly(fma(s * z, polynomial(z, kLogNarrow), s + s))};
}

Pair log_pair(const LogParts& l) {
  const Pair sum = two_sum(l.k * kShortLn2Hi, l.log.hi);
  return {sum.hi, sum.lo + fma(l.k, like(l.k, kShortLn2Lo), l.log.lo)};
}

}  // namespace detail

namespace {

using namespace detail;

// x = 2^k · (1 + f) with 1 + f in [2/3, 4/3).
Expr log_f32(Expr x) {
  constexpr int32_t kTwoThirds = 0x3f2aaaab;
  constexpr double kLog[] = {-0x1p-1,        0x1.555502p-2,  -0x1.ffff1cp-3,
                             0x1.99d1dp-3,   -0x1.5597d2p-3, 0x1.1ec0dap-3,
                             -0x1.f3a7dep-4, 0x1.1ec6e2p-3,  -0x1.06d524p-3};
  const Expr tiny = lt(x, like(x, 0x1p-126));
  const Expr bits = bits_of(select(tiny, x * 0x1p23, x));
  const Expr base = int_like(bits, kTwoThirds);
  const Expr offset = bits - select(tiny, int_like(bits, kTwoThirds + (23 << 23)), base);
  const Expr k = convert(shr(offset, int_like(bits, 23)), DType::kF32);
  const Expr f = bitcast((offset & int_like(bits, 0x7fffff)) + base, DType::kF32) - 1.0;
  const Expr low = fma(k, like(x, 0x1.7f7d1cp-20), f * f * estrin(f, kLog));
  // k·ln2 + f with its rounding error; the product is exact, as this piece of ln2 has 16 bits.
  const Expr high = k * 0x1.62e4p-1;
  const Pair sum = fast_two_sum(high, f);
  return log_edges(x, 0.0, sum.hi + (sum.lo + low));
}

Expr log2_f64(Expr x) {
  const LogParts l = log_parts(exactly(x));
  const Pair log2e{like(x, 0x1.71547652b82fep0), like(x, 0x1.777d0ffda0d24p-56)};
  return value(add(l.k, multiply(l.log, log2e)));
}

Expr log2_narrow(Expr x) {
  const LogParts l = log_parts_narrow(exactly(x));
  return fma(l.log.hi, like(x, 0x1.71547652b82fep0), l.k);
}

Expr log1p_f64(Expr x) {
  const Expr y = value(log_pair(log_parts(two_sum(like(x, 1.0), x))));
  return log_edges(x, -1.0, select(lt(abs(x), like(x, 0x1p-54)), x, y));
}

Expr log1p_narrow(Expr x) {
  const Expr y = value(log_pair(log_parts_narrow(two_sum(like(x, 1.0), x))));
  return log_edges(x, -1.0, select(lt(abs(x), like(x, 0x1p-54)), x, y));
}

}  // namespace

namespace definition {

Expr log(Expr x) {
  if (is_f32(x)) return log_f32(x);
  return log_edges(x, 0.0, value(log_pair(log_parts(exactly(x)))));
}

Expr log2(Expr x) {
  if (!is_f32(x)) return log_edges(x, 0.0, log2_f64(x));
  const Expr wide = widen(x);
  return narrow(log_edges(wide, 0.0, log2_narrow(wide)));
}

Expr log1p(Expr x) { return is_f32(x) ? narrow(log1p_narrow(widen(x))) : log1p_f64(x); }

}  // namespace definition
}  // namespace pyc::loop
