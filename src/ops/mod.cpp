#include <limits>

#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

constexpr int kFractionBits = 52;
constexpr int kExponentBits = 11;

Types infer_mod(const InferArgs& args) { return infer_elementwise(args, kNumbers); }

Expr i64(Expr x, int64_t v) { return loop::index(*x.pool, v); }

// |x| of an f64 as mantissa · 2^(exponent - 1075).
struct Parts {
  Expr mantissa;
  Expr exponent;
};
Parts parts_of(Expr x) {
  const Expr bits = bitcast(abs(x), DType::kI64);
  const Expr exponent = shr(bits, i64(x, kFractionBits));
  const Expr fraction = bits & i64(x, (int64_t{1} << kFractionBits) - 1);
  const Expr normal = lt(i64(x, 0), exponent);
  return {select(normal, fraction | i64(x, int64_t{1} << kFractionBits), fraction),
          max(exponent, i64(x, 1))};
}

// a·b mod m for 0 <= a, b <= m < 2^53. The quotient in f64 is off by 3 at most, so that the
// difference is right in i64 although the products wrap.
Expr multiply_mod(Expr a, Expr b, Expr m) {
  const auto real = [](Expr x) { return convert(x, DType::kF64); };
  const Expr quotient = convert(real(a) * real(b) / real(m), DType::kI64);
  const Expr rest = rem(a * b - quotient * m, m);
  return select(lt(rest, i64(m, 0)), rest + m, rest);
}

// 2^k mod m for 0 <= k < 2^kExponentBits.
Expr power_of_two_mod(Expr k, Expr m) {
  Expr result = rem(i64(m, 1), m);
  for (int bit = kExponentBits; bit-- > 0;) {
    const Expr doubled = shl(i64(m, 1), shr(k, i64(m, bit)) & i64(m, 1));
    result = rem(multiply_mod(result, result, m) * doubled, m);
  }
  return result;
}

// 2^k for -1022 <= k <= 1023.
Expr power_of_two_mod(Expr k) {
  return bitcast(shl(k + i64(k, 1023), i64(k, kFractionBits)), DType::kF64);
}

// The exact remainder of x / y with the sign of x, in f64.
Expr fmod(Expr x, Expr y) {
  const Parts a = parts_of(x);
  const Parts b = parts_of(y);
  const Expr m = max(b.mantissa, i64(x, 1));
  const Expr shift = max(a.exponent - b.exponent, i64(x, 0));
  const Expr rest = multiply_mod(rem(a.mantissa, m), power_of_two_mod(shift, m), m);
  // In two steps, as the factor alone may be too small for f64.
  const Expr scale = b.exponent - i64(x, 1075);
  const Expr half = shr(scale, i64(x, 1));
  const Expr size =
      convert(rest, DType::kF64) * power_of_two_mod(half) * power_of_two_mod(scale - half);
  const Expr found = select(lt(x, like(x, 0.0)), -size, size);
  const Expr infinity = like(x, std::numeric_limits<double>::infinity());
  const Expr defined = lt(abs(x), infinity) & ne(y, like(x, 0.0)) & eq(y, y);
  const Expr nan = like(x, std::numeric_limits<double>::quiet_NaN());
  return select(defined, select(lt(abs(x), abs(y)), x, found), nan);
}

// The remainder with the sign of y, zeros included, in f64.
Expr floor_mod_of(Expr x, Expr y) {
  const Expr zero = like(x, 0.0);
  const Expr rest = fmod(x, y);
  const Expr moved = select(ne(lt(rest, zero), lt(y, zero)), rest + y, rest);
  const Expr signed_zero = select(lt(y, zero), like(x, -0.0), zero);
  return select(eq(rest, zero), signed_zero, moved);
}

Expr float_remainder(LowerContext& context, Expr a, Expr b) {
  const Expr x = convert(a, DType::kF64);
  const Expr y = convert(b, DType::kF64);
  return context.attr_bool("fmod") ? fmod(x, y) : floor_mod_of(x, y);
}

Expr lower_mod(LowerContext& context, int, std::span<const Expr> index) {
  const Expr a = wide_operand(context, 0, index);
  const Expr b = wide_operand(context, 1, index);
  if (is_float(a.dtype())) return rounded(context, float_remainder(context, a, b));
  const Expr rest = rem(a, b);
  if (context.attr_bool("fmod") || is_unsigned_int(a.dtype())) return rounded(context, rest);
  const Expr zero = like(a, 0.0);
  const Expr other_sign = ne(lt(rest, zero), lt(b, zero));
  return rounded(context, select(ne(rest, zero) & other_sign, rest + b, rest));
}

Grads gradient_mod(ir::GraphBuilder& builder, const ir::Node& node,
                   std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  // a - b·n, where n stays as a and b move.
  const ValueId n = b.div(b.sub(b.x(0), b.y()), b.x(1));
  return b.outputs({b.to_input(b.g(), 0), b.to_input(b.neg(b.mul(b.g(), n)), 1)});
}

Result<ValueId> draw_mod(Draw& d, DType t) { return drawn_divided(d, t, {{"fmod", d.flip()}}); }

}  // namespace

const ir::OpDef& op_mod() {
  static const ir::OpDef def{
      .name = "mod",
      .summary =
          "The remainder of a / b, broadcast: with b's sign, or with a's if fmod is set; "
          "x mod 0 = 0, NaN for floats.",
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {optional("fmod", false)},
      .infer = infer_mod,
      .lower = lower_mod,
      .traits = {.elementwise = true},
      .gradient = gradient_mod,
      .draw = {.node = draw_mod, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
