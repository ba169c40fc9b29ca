#include "base/matrix_unit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace pyc {
namespace {

constexpr int kFactorFraction = Factor::kFractionBits;
constexpr int kProductFraction = 2 * kFactorFraction;
constexpr int kF32Fraction = 23;
constexpr int kF32MinExponent = -126;
constexpr int kF32MaxExponent = 127;
constexpr uint32_t kF32Infinity = 0x7F800000;
constexpr uint32_t kF32Sign = 0x80000000;

// A finite number as magnitude · 2^(exponent − fraction), the fraction known from context.
struct Term {
  uint64_t magnitude;
  int exponent;
  bool negative;
};

Term accumulator_term(uint32_t bits) {
  const int field = static_cast<int>((bits >> kF32Fraction) & 0xFF);
  const uint64_t fraction = bits & 0x7FFFFF;
  const bool negative = (bits & kF32Sign) != 0;
  if (field == 0) return {fraction, kF32MinExponent, negative};
  return {fraction | 0x800000, field - kF32MaxExponent, negative};
}

// magnitude · 2^left, truncated.
int64_t aligned(const Term& term, int left) {
  if (term.magnitude == 0 || left <= -64) return 0;
  const uint64_t shifted = left >= 0 ? term.magnitude << left : term.magnitude >> -left;
  const auto value = static_cast<int64_t>(shifted);
  return term.negative ? -value : value;
}

// What the factors and the accumulator that are not finite make of the block.
struct NonFinite {
  bool any = false;
  bool nan = false;
  bool plus = false;
  bool minus = false;

  void add_infinity(bool negative) {
    any = true;
    (negative ? minus : plus) = true;
  }
  void add_nan() { any = nan = true; }

  void add_accumulator(uint32_t bits) {
    if ((bits & kF32Infinity) != kF32Infinity) return;
    if ((bits & 0x7FFFFF) != 0) return add_nan();
    add_infinity((bits & kF32Sign) != 0);
  }
  void add_product(const Factor& a, const Factor& b) {
    using Kind = Factor::Kind;
    if (a.kind == Kind::kFinite && b.kind == Kind::kFinite) return;
    if (a.kind == Kind::kNaN || b.kind == Kind::kNaN) return add_nan();
    const Factor& other = a.kind == Kind::kInfinity ? b : a;
    if (other.kind == Kind::kFinite && other.significand == 0) return add_nan();
    add_infinity(a.negative != b.negative);
  }

  float result(const AlignedBlock& rules) const {
    const bool is_nan =
        nan || (plus && minus) || rules.infinities == AlignedBlock::Infinities::kNaN;
    if (is_nan) return std::bit_cast<float>(rules.nan_bits);
    return std::bit_cast<float>(kF32Infinity | (minus ? kF32Sign : 0));
  }
};

// sum · 2^scale, truncated by the rules of step 5; the sum is not zero.
float truncated(const AlignedBlock& rules, int64_t sum, int scale) {
  const uint32_t sign = sum < 0 ? kF32Sign : 0;
  const uint64_t magnitude = sum < 0 ? -static_cast<uint64_t>(sum) : static_cast<uint64_t>(sum);
  const int exponent = std::bit_width(magnitude) - 1 + scale;
  const int fraction = rules.result_fraction_bits;
  if (exponent > kF32MaxExponent) {
    if (rules.overflow == AlignedBlock::Overflow::kInfinity)
      return std::bit_cast<float>(sign | kF32Infinity);
    const uint32_t dropped = (1U << (kF32Fraction - fraction)) - 1;
    return std::bit_cast<float>(sign | ((kF32Infinity - 1) & ~dropped));
  }
  const bool subnormal = exponent < kF32MinExponent;
  if (subnormal && rules.subnormal_result == AlignedBlock::SubnormalResult::kFlush)
    return std::bit_cast<float>(rules.zero_result == AlignedBlock::ZeroResult::kPlus ? 0 : sign);
  // A subnormal has the places of the least normal numbers, so fewer of its own.
  const int unit = std::max(exponent, kF32MinExponent) - fraction;
  const int left = scale - unit;
  if (left <= -64) return 0.0F;
  const uint64_t kept = left >= 0 ? magnitude << left : magnitude >> -left;
  const uint64_t places = kept << (kF32Fraction - fraction);
  // A normal number's leading bit adds the one that the exponent field below lacks.
  const auto field = static_cast<uint32_t>(subnormal ? 0 : exponent - kF32MinExponent);
  if (places == 0) return 0.0F;
  return std::bit_cast<float>(sign | ((field << kF32Fraction) + static_cast<uint32_t>(places)));
}

constexpr std::array kHalves = {DType::kF16, DType::kBF16};
constexpr std::array kFp8 = {DType::kF8E4M3FN, DType::kF8E5M2};

constexpr std::array kUnits = {MatrixUnit{"sm90", 16, 1024, kHalves, kSm90Block},
                               MatrixUnit{"sm90", 32, 1024, kFp8, kSm90Fp8Block}};

constexpr size_t kLargestBlock = 64;

}  // namespace

FactorFormat factor_format(DType type) {
  switch (type) {
    case DType::kF16:
      return {10, 5, true};
    case DType::kF8E5M2:
      return {2, 5, true};
    case DType::kF8E4M3FN:
      return {3, 4, false};
    default:
      return {7, 8, true};
  }
}

Factor Factor::from_bits(DType type, uint16_t bits) {
  const FactorFormat format = factor_format(type);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent_mask = (1 << format.exponent_bits) - 1;
  const int fraction_mask = (1 << format.fraction_bits) - 1;
  const int field = (bits >> format.fraction_bits) & exponent_mask;
  const int fraction = bits & fraction_mask;
  Factor factor;
  factor.negative = ((bits >> (format.fraction_bits + format.exponent_bits)) & 1) != 0;
  if (format.has_infinity && field == exponent_mask) {
    factor.kind = fraction == 0 ? Kind::kInfinity : Kind::kNaN;
    return factor;
  }
  if (!format.has_infinity && field == exponent_mask && fraction == fraction_mask) {
    factor.kind = Kind::kNaN;
    return factor;
  }
  const int significand = field == 0 ? fraction : fraction | (1 << format.fraction_bits);
  factor.significand =
      static_cast<uint16_t>(significand << (kFactorFraction - format.fraction_bits));
  factor.exponent = static_cast<int16_t>(std::max(field, 1) - bias);
  return factor;
}

float AlignedBlock::add(float acc, std::span<const Factor> a, std::span<const Factor> b) const {
  const auto acc_bits = std::bit_cast<uint32_t>(acc);
  NonFinite non_finite;
  non_finite.add_accumulator(acc_bits);
  for (size_t i = 0; i < a.size(); ++i) non_finite.add_product(a[i], b[i]);
  if (non_finite.any) return non_finite.result(*this);

  const Term start = accumulator_term(acc_bits);
  std::array<Term, kLargestBlock> products;
  constexpr int kNone = std::numeric_limits<int>::min();
  int largest = start.magnitude != 0 ? start.exponent : kNone;
  bool all_minus = start.negative;
  for (size_t i = 0; i < a.size(); ++i) {
    Term& product = products[i];
    product.magnitude = static_cast<uint64_t>(a[i].significand) * b[i].significand;
    product.exponent = a[i].exponent + b[i].exponent;
    product.negative = a[i].negative != b[i].negative;
    all_minus = all_minus && product.negative;
    if (product.magnitude != 0) largest = std::max(largest, product.exponent);
  }
  if (largest == kNone) return all_minus && zero_result == ZeroResult::kAllMinus ? -0.0F : 0.0F;

  largest = std::max(largest, least_exponent);
  int64_t sum = aligned(start, start.exponent - kF32Fraction - (largest - fraction_bits));
  for (size_t i = 0; i < a.size(); ++i)
    sum +=
        aligned(products[i], products[i].exponent - kProductFraction - (largest - fraction_bits));
  if (sum == 0) return 0.0F;
  return truncated(*this, sum, largest - fraction_bits);
}

float sm90_block(float acc, std::span<const Factor, 16> a, std::span<const Factor, 16> b) {
  return kSm90Block.add(acc, a, b);
}

bool MatrixUnit::covers(DType type) const {
  return std::find(dtypes.begin(), dtypes.end(), type) != dtypes.end();
}

std::span<const MatrixUnit> matrix_units() { return kUnits; }

std::optional<MatrixUnit> find_matrix_unit(std::string_view name, DType type) {
  for (const MatrixUnit& unit : kUnits)
    if (unit.name == name && unit.covers(type)) return unit;
  return std::nullopt;
}

std::vector<std::string_view> matrix_unit_names() {
  std::vector<std::string_view> names;
  for (const MatrixUnit& unit : kUnits) {
    if (std::find(names.begin(), names.end(), unit.name) == names.end()) {
      names.push_back(unit.name);
    }
  }
  return names;
}

float named_order_sum(const MatrixUnit& unit, std::span<const Factor> a,
                      std::span<const Factor> b) {
  const auto block = static_cast<size_t>(unit.block);
  const auto segment = static_cast<size_t>(unit.segment);
  std::array<Factor, kLargestBlock> last_a;
  std::array<Factor, kLargestBlock> last_b;
  float total = 0.0F;
  for (size_t begin = 0; begin < a.size(); begin += segment) {
    const size_t end = std::min(begin + segment, a.size());
    float acc = 0.0F;
    for (size_t k = begin; k < end; k += block) {
      const size_t count = std::min(block, end - k);
      if (count == block) {
        acc = unit.add_block(acc, a.subspan(k, block), b.subspan(k, block));
        continue;
      }
      last_a.fill({});
      last_b.fill({});
      std::copy_n(a.begin() + static_cast<std::ptrdiff_t>(k), count, last_a.begin());
      std::copy_n(b.begin() + static_cast<std::ptrdiff_t>(k), count, last_b.begin());
      acc = unit.add_block(acc, std::span(last_a).first(block), std::span(last_b).first(block));
    }
    total = total + acc;
  }
  return total;
}

}  // namespace pyc
