#include "loop/functions.h"
#include "loop/functions_detail.h"

namespace pyc::loop {
namespace {

using namespace detail;

constexpr double kHalfPi = 0x1.921fb54442d18p0;
constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;

// asin(w) from w³, in w², for |w| <= ½; atan(t) from t³, in t², for |t| <= √2 - 1.
constexpr double kAsinWide[] = {0x1.5555555555553p-3,  0x1.33333333339f7p-4,  0x1.6db6db6d4b18ap-5,
                                0x1.f1c71ca786304p-6,  0x1.6e8b9b018a6afp-6,  0x1.1c4f849ae9adbp-6,
                                0x1.c980f00a7bd6ap-7,  0x1.7ba3ec667a040p-7,  0x1.36c31406a161bp-7,
                                0x1.48115c1eb6b16p-7,  0x1.606166494c3b6p-11, 0x1.973ae2858c05ap-6,
                                -0x1.ad334fcf7d38ap-6, 0x1.13e172acde071p-5};
constexpr double kAsinNarrow[] = {0x1.555555478f17dp-3,  0x1.333340c774a41p-4, 0x1.6db24b545e351p-5,
                                  0x1.f283e6fd4e3e3p-6,  0x1.662f9536244a4p-6, 0x1.52918e2e70b28p-6,
                                  0x1.faf09a0d4c68dp-10, 0x1.0dfc4c2611c6ep-5};
constexpr double kAtanWide[] = {-0x1.5555555555554p-2, 0x1.9999999999583p-3,  -0x1.249249246f4a3p-3,
                                0x1.c71c71b44f292p-4,  -0x1.745d144eaa29dp-4, 0x1.3b1364c7c5707p-4,
                                -0x1.110be9003c79fp-4, 0x1.e16789d26fc42p-5,  -0x1.ab3ab188819bap-5,
                                0x1.6fdfd0bf6e3e9p-5,  -0x1.0fc9689f1501ap-5, 0x1.e81c185b63a57p-7};
constexpr double kAtanNarrow[] = {
    -0x1.5555554effa93p-2, 0x1.99999218d1f75p-3, -0x1.2490c7415c02ap-3, 0x1.c6d27e4826fb8p-4,
    -0x1.7087ba20af152p-4, 0x1.1e71d40c478edp-4, -0x1.36f5b5278f874p-5};

// asin(a) = w + tail for a <= ½; for greater a, asin(a) = π/2 - 2·(w + tail), w = sqrt((1 - a)/2).
// NaN for a > 1.
struct Arc {
  Expr large;
  Expr w;
  Expr tail;
};

Arc arc_of(Expr a, bool wide) {
  const Expr large = lt(like(a, 0.5), a);
  const Expr z = select(large, (like(a, 1.0) - a) * 0.5, a * a);
  const Expr root = sqrt(z);
  const Expr w = select(large, root, a);
  const auto coefficients = wide ? std::span<const double>(kAsinWide) : kAsinNarrow;
  const Expr cubic = w * z * polynomial(z, coefficients);
  if (!wide) return {large, w, cubic};
  const Expr rest = fma(-root, root, z) / max(root + root, like(a, 0x1p-1000));
  return {large, w, select(large, cubic + rest, cubic)};
}

// whole·π/2 - times·(w + tail).
Expr less(double whole, double times, const Arc& arc) {
  const Pair sum = two_sum(like(arc.w, whole * kHalfPi), arc.w * -times);
  return sum.hi + (sum.lo + fma(arc.tail, like(arc.w, -times), like(arc.w, whole * kHalfPiLow)));
}

Expr asin_of(Expr x, bool wide) {
  const Arc arc = arc_of(abs(x), wide);
  return with_sign(select(arc.large, less(1, 2, arc), arc.w + arc.tail), x);
}

Expr acos_of(Expr x, bool wide) {
  const Arc arc = arc_of(abs(x), wide);
  const Expr negative = lt(x, like(x, 0.0));
  const Expr small = less(
      1, 1, {arc.large, select(negative, -arc.w, arc.w), select(negative, -arc.tail, arc.tail)});
  const Expr sum = arc.w + arc.tail;
  return select(arc.large, select(negative, less(2, 2, arc), sum + sum), small);
}

// atan(a) = offset + atan(t) with |t| <= √2 - 1, in three ranges of a.
Expr atan_of(Expr x, bool wide) {
  const Expr a = min(abs(x), like(x, 0x1p60));
  const Expr one = like(x, 1.0);
  const Expr zero = like(x, 0.0);
  const Expr middle = lt(like(x, 0x1.a827999fcef32p-2), a);
  const Expr large = lt(like(x, 0x1.3504f333f9de6p1), a);
  const auto pick = [&](Expr l, Expr m, Expr s) { return select(large, l, select(middle, m, s)); };
  const Pair above = two_sum(a, -one);
  const Pair below = two_sum(a, one);
  const Pair top{pick(-one, above.hi, a), pick(zero, above.lo, zero)};
  const Pair bottom{pick(a, below.hi, one), pick(zero, below.lo, zero)};
  const Pair t = wide ? divide(top, bottom) : exactly(top.hi / bottom.hi);
  const Expr z = t.hi * t.hi;
  const auto coefficients = wide ? std::span<const double>(kAtanWide) : kAtanNarrow;
  const Expr cubic = t.hi * z * polynomial(z, coefficients);
  const Expr offset = pick(like(x, kHalfPi), like(x, kHalfPi / 2), zero);
  const Expr offset_low = pick(like(x, kHalfPiLow), like(x, kHalfPiLow / 2), zero);
  const Pair sum = fast_two_sum(offset, t.hi);
  return with_sign(sum.hi + (sum.lo + (cubic + (t.lo + offset_low))), x);
}

}  // namespace

namespace definition {

Expr asin(Expr x) { return is_f32(x) ? narrow(asin_of(widen(x), false)) : asin_of(x, true); }
Expr acos(Expr x) { return is_f32(x) ? narrow(acos_of(widen(x), false)) : acos_of(x, true); }
Expr atan(Expr x) { return is_f32(x) ? narrow(atan_of(widen(x), false)) : atan_of(x, true); }

}  // namespace definition
}  // namespace pyc::loop
