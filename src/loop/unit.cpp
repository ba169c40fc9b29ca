#include "loop/unit.h"

#include <functional>
#include <string>
#include <vector>

#include "loop/function.h"

namespace pyc::loop {
namespace {

constexpr int kF32FractionBits = 23;
constexpr int kF32LeastExponent = -126;
constexpr int kF32LargestExponent = 127;
constexpr int64_t kF32InfinityBits = 0x7F800000;
constexpr int64_t kF32SignBit = 0x80000000;
constexpr int kF64FractionBits = 52;
constexpr int kF64Bias = 1023;
// Below every exponent there is.
constexpr int64_t kNoExponent = -4096;

// Bits of `special`.
constexpr int64_t kIsNaN = 1;
constexpr int64_t kIsPlusInfinity = 2;
constexpr int64_t kIsMinusInfinity = 4;

Expr number(Expr x, int64_t v) { return index(*x.pool, v); }
Expr both(Expr a, Expr b) { return a & b; }
Expr either(Expr a, Expr b) { return a | b; }
Expr is(Expr x, int64_t v) { return eq(x, number(x, v)); }
Expr low_bits(Expr x, int count) { return x & number(x, (int64_t{1} << count) - 1); }

// magnitude · 2^left, truncated; a shift by 64 or more gives 0.
Expr shifted(Expr magnitude, Expr left) {
  const Expr zero = number(left, 0);
  return shr(shl(magnitude, max(left, zero)), max(-left, zero));
}

// A number as ± magnitude · 2^(exponent − its fraction bits).
struct Parts {
  Expr magnitude;
  Expr exponent;
  Expr negative;
  Expr infinite;
  Expr nan;
};

Parts take_apart(Expr bits, const FactorFormat& format) {
  const int width = format.fraction_bits;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int64_t ones = (int64_t{1} << format.exponent_bits) - 1;
  const Expr field = low_bits(shr(bits, number(bits, width)), format.exponent_bits);
  const Expr fraction = low_bits(bits, width);
  const Expr highest = is(field, ones);
  Parts p;
  p.magnitude = select(is(field, 0), fraction, fraction | number(fraction, int64_t{1} << width));
  p.exponent = max(field, number(field, 1)) - number(field, bias);
  p.negative = is(low_bits(shr(bits, number(bits, width + format.exponent_bits)), 1), 1);
  const int64_t all = (int64_t{1} << width) - 1;
  p.infinite = format.has_infinity ? both(highest, is(fraction, 0)) : ne(field, field);
  p.nan =
      both(highest, format.has_infinity ? ne(fraction, number(fraction, 0)) : is(fraction, all));
  return p;
}

Parts take_apart_f32(Expr acc) {
  return take_apart(convert(bitcast(acc, DType::kU32), DType::kI64), {23, 8, true});
}

struct Product {
  Expr magnitude;  // · 2^(exponent − 2 · fraction bits)
  Expr exponent;
  Expr negative;
};

Product multiply(const Parts& a, const Parts& b) {
  return {a.magnitude * b.magnitude, a.exponent + b.exponent, ne(a.negative, b.negative)};
}

Expr signed_by(Expr negative, Expr magnitude) { return select(negative, -magnitude, magnitude); }

Expr infinity_flag(Expr negative) {
  Pool& pool = *negative.pool;
  return select(negative, index(pool, kIsMinusInfinity), index(pool, kIsPlusInfinity));
}

// The definitions, of one unit and type of factors.
class Definitions {
 public:
  Definitions(const AlignedBlock& rules, DType type) : rules_(rules), format_(factor_format(type)) {
    using Block = AlignedBlock;
    PYC_CHECK(rules.overflow == Block::Overflow::kInfinity &&
                  rules.subnormal_result == Block::SubnormalResult::kKeep &&
                  rules.zero_result == Block::ZeroResult::kPlus &&
                  rules.infinities == Block::Infinities::kIeee,
              "a unit that decides otherwise at the ends needs these functions extended");
  }

  Expr exponent(Expr a, Expr b) const {
    const Product p = multiply(take_apart(a, format_), take_apart(b, format_));
    return select(is(p.magnitude, 0), number(a, kNoExponent), p.exponent);
  }

  Expr special(Expr a, Expr b) const {
    const Parts x = take_apart(a, format_);
    const Parts y = take_apart(b, format_);
    const Expr zero_times_infinity =
        either(both(x.infinite, is(y.magnitude, 0)), both(y.infinite, is(x.magnitude, 0)));
    const Expr nan = either(either(x.nan, y.nan), zero_times_infinity);
    const Expr infinite = either(x.infinite, y.infinite);
    const Expr infinity = infinity_flag(ne(x.negative, y.negative));
    return select(nan, number(a, kIsNaN), select(infinite, infinity, number(a, 0)));
  }

  Expr scale(Expr acc, Expr largest) const {
    const Parts p = take_apart_f32(acc);
    const Expr own = select(is(p.magnitude, 0), number(largest, kNoExponent), p.exponent);
    return max(max(largest, own), number(largest, rules_.least_exponent));
  }

  Expr addend(Expr a, Expr b, Expr scale) const {
    const Product p = multiply(take_apart(a, format_), take_apart(b, format_));
    return aligned(p.magnitude, p.exponent, p.negative, 2 * format_.fraction_bits, scale);
  }

  // (the sum and the accumulator) · 2^(scale − F), truncated to R fraction bits.
  Expr finite(Expr acc, Expr sum, Expr scale) const {
    const Parts p = take_apart_f32(acc);
    const Expr total = sum + aligned(p.magnitude, p.exponent, p.negative, kF32FractionBits, scale);
    const Expr negative = lt(total, number(total, 0));
    const Expr magnitude = signed_by(negative, total);
    const Expr unit = scale - number(scale, rules_.fraction_bits);
    // An integer below 2^53 is an f64 exactly, and its exponent that of the leading bit.
    const Expr bits = bitcast(convert(magnitude, DType::kF64), DType::kI64);
    const Expr exponent = shr(bits, number(bits, kF64FractionBits)) - number(bits, kF64Bias) + unit;
    const Expr least = number(exponent, kF32LeastExponent);
    const int places = rules_.result_fraction_bits;
    const Expr kept = shifted(magnitude, unit - (max(exponent, least) - number(exponent, places)));
    // A normal number's leading bit adds the one that the exponent field below lacks.
    const Expr field = select(lt(exponent, least), number(exponent, 0), exponent - least);
    const Expr shift = number(field, kF32FractionBits);
    Expr word = shl(field, shift) + shl(kept, number(kept, kF32FractionBits - places));
    const Expr overflows = lt(number(exponent, kF32LargestExponent), exponent);
    word = select(overflows, number(word, kF32InfinityBits), word);
    word = word | select(negative, number(word, kF32SignBit), number(word, 0));
    return as_f32(select(is(kept, 0), number(word, 0), word));
  }

  Expr result(Expr acc, Expr special, Expr finite) const {
    const Parts p = take_apart_f32(acc);
    const Expr none = number(special, 0);
    const Expr own =
        select(p.nan, number(special, kIsNaN), select(p.infinite, infinity_flag(p.negative), none));
    const Expr flags = special | own;
    const auto has = [&](int64_t flag) { return ne(flags & number(flags, flag), none); };
    const Expr minus = has(kIsMinusInfinity);
    const Expr nan = either(has(kIsNaN), both(has(kIsPlusInfinity), minus));
    const Expr infinity = select(minus, number(flags, kF32InfinityBits | kF32SignBit),
                                 number(flags, kF32InfinityBits));
    const Expr word = select(nan, number(flags, rules_.nan_bits), infinity);
    return select(eq(flags, none), finite, as_f32(word));
  }

 private:
  // ± magnitude · 2^(exponent − fraction) as a multiple of 2^(scale − F).
  Expr aligned(Expr magnitude, Expr exponent, Expr negative, int fraction, Expr scale) const {
    const Expr left = exponent - scale + number(scale, rules_.fraction_bits - fraction);
    return signed_by(negative, shifted(magnitude, left));
  }
  static Expr as_f32(Expr word) { return bitcast(convert(word, DType::kU32), DType::kF32); }

  AlignedBlock rules_;
  FactorFormat format_;
};

// A function of the pool, named after the unit and the factors' type.
class Definer {
 public:
  Definer(Pool& pool, const MatrixUnit& unit, DType type)
      : pool_(pool), prefix_(std::string(unit.name) + "_" + std::string(dtype_name(type)) + "_") {}

  template <class F>
  uint32_t operator()(const char* name, const std::vector<DType>& params, F&& value) const {
    Definition d;
    d.name = prefix_ + name;
    std::vector<Expr> x;
    for (const DType t : params) d.params.push_back(d.pool.new_var("x", t, kResult));
    for (const VarId v : d.params) x.push_back({&d.pool, d.pool.var(v)});
    d.value = value(x).id;
    return pool_.function(make_function(std::move(d)));
  }

 private:
  Pool& pool_;
  std::string prefix_;
};

}  // namespace

UnitBlock::UnitBlock(Pool& pool, const MatrixUnit& unit, DType type) : pool_(&pool), type_(type) {
  const Definitions d(unit.arithmetic, type);
  const Definer define(pool, unit, type);
  using Args = const std::vector<Expr>&;
  constexpr DType kInt = DType::kI64;
  constexpr DType kAcc = DType::kF32;
  exponent_ = define("exponent", {kInt, kInt}, [&](Args x) { return d.exponent(x[0], x[1]); });
  special_ = define("special", {kInt, kInt}, [&](Args x) { return d.special(x[0], x[1]); });
  scale_ = define("scale", {kAcc, kInt}, [&](Args x) { return d.scale(x[0], x[1]); });
  addend_ =
      define("addend", {kInt, kInt, kInt}, [&](Args x) { return d.addend(x[0], x[1], x[2]); });
  finite_ =
      define("finite", {kAcc, kInt, kInt}, [&](Args x) { return d.finite(x[0], x[1], x[2]); });
  result_ =
      define("result", {kAcc, kInt, kAcc}, [&](Args x) { return d.result(x[0], x[1], x[2]); });
}

Expr UnitBlock::factor(Expr x) const {
  const ExprNode& n = pool_->node(x.id);
  const bool widened = n.op == Op::kConvert && pool_->dtype(n.a) == type_;
  const Expr narrow = widened ? Expr{pool_, n.a} : convert(x, type_);
  return convert(bitcast(narrow, dtype_size(type_) == 1 ? DType::kU8 : DType::kU16), DType::kI64);
}

}  // namespace pyc::loop
