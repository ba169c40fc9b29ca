#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/convert.h"
#include "loop/function.h"
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

// What the cases of IEEE 754, 9.2.1, ask of the exponent; constants where it is one.
struct Exponent {
  Expr integral;
  Expr odd;
  Expr zero;
  Expr infinite;
};

Exponent traits_of(Expr y, std::optional<double> known) {
  if (known) {
    const auto truth = [&](bool v) { return constant_int(*y.pool, DType::kBool, v ? 1 : 0); };
    const double v = *known;
    const bool odd = std::floor(v) == v && std::floor(v * 0.5) != v * 0.5;
    return {truth(std::floor(v) == v), truth(odd), truth(v == 0.0), truth(std::isinf(v))};
  }
  const Expr integral = eq(floor(y), y);
  const Expr half = y * 0.5;
  const Expr odd = integral & ne(floor(half), half);
  return {integral, odd, eq(y, like(y, 0.0)), eq(abs(y), like(y, kInf))};
}

// The cases that depend on signs and on whether y is an odd integer (IEEE 754, 9.2.1).
Expr pow_with(Expr x, Expr y, const Exponent& traits, bool wide) {
  const Expr one = like(x, 1.0);
  const Expr zero = like(x, 0.0);
  const Expr inf = like(x, kInf);
  const Expr a = abs(x);
  const LogParts parts = wide ? log_parts(exactly(a)) : log_parts_narrow(exactly(a));
  Pair log = log_pair(parts);
  if (!wide) log.hi = value(log);
  log.hi = select(eq(a, zero), -inf, select(lt(a, inf), log.hi, a));
  const Expr magnitude = wide ? power(y, log) : power_narrow(y, log.hi);

  const Expr negative = lt(bits_of(x), int_like(bits_of(x), 0)) & traits.odd;
  const Expr real = select(negative, -magnitude, magnitude);
  const Expr no_value = lt(x, zero) & lt(-inf, x) & ~traits.integral;
  const Expr result = select(no_value, like(x, kNaN), real);
  const Expr is_one = eq(x, one) | traits.zero | (eq(a, one) & traits.infinite);
  return select(is_one, one, result);
}

Expr general_pow(Expr x, Expr y, std::optional<double> known) {
  if (!is_f32(x)) return pow_with(x, y, traits_of(y, known), true);
  const Expr wide = widen(y);
  return narrow(pow_with(widen(x), wide, traits_of(wide, known), false));
}

// sqrt(x), but +0 for -0, as pow has it.
Expr positive_root(Expr x) { return sqrt(x) + 0.0; }

Expr unless_minus_inf(Expr x, double value, Expr y) {
  return select(eq(x, like(x, -kInf)), like(x, value), y);
}

// Exponents whose power is a product, a root or a quotient of x's own type.
struct ShortPower {
  double exponent;
  Expr (*of)(Expr x);
};

constexpr std::array<ShortPower, 5> kShortPowers = {{
    {2.0, [](Expr x) { return x * x; }},
    {3.0, [](Expr x) { return x * x * x; }},
    {0.5, [](Expr x) { return unless_minus_inf(x, kInf, positive_root(x)); }},
    {-1.0, [](Expr x) { return like(x, 1.0) / x; }},
    {-0.5, [](Expr x) { return unless_minus_inf(x, 0.0, like(x, 1.0) / positive_root(x)); }},
}};

// The short power with this exponent, or null.
const ShortPower* short_power(double exponent) {
  for (const ShortPower& p : kShortPowers) {
    if (p.exponent == exponent) return &p;
  }
  return nullptr;
}

// The value of a constant, also of one that is converted.
std::optional<double> constant_value(Expr x) {
  const ExprNode& n = x.pool->node(x.id);
  if (n.op == Op::kConst) return word_to_double(n.word, n.dtype);
  if (n.op != Op::kConvert) return {};
  const ExprNode& from = x.pool->node(n.a);
  if (from.op != Op::kConst) return {};
  return word_to_double(convert_word(from.word, from.dtype, n.dtype), n.dtype);
}

// The bits of the exponent tell the functions of constant powers apart.
std::string power_name(double exponent) {
  char digits[20];
  const auto bits = std::bit_cast<uint64_t>(exponent);
  const auto end = std::to_chars(digits, digits + sizeof digits, bits, 16).ptr;
  return "pow_" + std::string(digits, end);
}

Expr call_power(Expr x, double exponent) {
  Definition d;
  d.name = power_name(exponent);
  d.params = {d.pool.new_var("x", x.dtype(), kResult)};
  d.value = definition::pow_constant({&d.pool, d.pool.var(d.params[0])}, exponent).id;
  return {x.pool, x.pool->call(x.pool->function(make_function(std::move(d))), x.id)};
}

}  // namespace

namespace definition {

Expr pow(Expr x, Expr y) {
  Expr result = general_pow(x, y, {});
  for (const ShortPower& p : kShortPowers) {
    result = select(eq(y, like(y, p.exponent)), p.of(x), result);
  }
  return result;
}

Expr pow_constant(Expr x, double y) { return general_pow(x, like(x, y), y); }

}  // namespace definition

Expr pow(Expr x, Expr y) {
  const std::optional<double> known = constant_value(y);
  if (!known) return detail::call_elementary("pow", x, y);
  const ShortPower* known_short = short_power(*known);
  return known_short != nullptr ? known_short->of(x) : call_power(x, *known);
}

}  // namespace pyc::loop
