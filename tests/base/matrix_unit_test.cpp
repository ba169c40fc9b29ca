// One block of the matrix unit sm90 and the named order made of it, against values worked out by
// hand and against a second computation in wide integers that shares no code with the first.

#include "base/matrix_unit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "base/convert.h"

namespace pyc {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

using Pairs = std::vector<std::pair<float, float>>;

uint16_t half_bits(DType type, float x) { return static_cast<uint16_t>(word_from_double(x, type)); }

Factor half_factor(DType type, float x) { return Factor::from_bits(type, half_bits(type, x)); }

struct Operands {
  std::vector<Factor> a;
  std::vector<Factor> b;
};

Operands operands_of(DType type, const Pairs& pairs) {
  Operands operands;
  for (const auto& [x, y] : pairs) {
    operands.a.push_back(half_factor(type, x));
    operands.b.push_back(half_factor(type, y));
  }
  return operands;
}

float block_of(float acc, const Pairs& pairs, const AlignedBlock& rules = kSm90Block,
               DType type = DType::kBF16) {
  Operands operands = operands_of(type, pairs);
  operands.a.resize(16);
  operands.b.resize(16);
  return rules.add(acc, operands.a, operands.b);
}

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

TEST(MatrixUnit, TakesOperandsApart) {
  const Factor one = half_factor(DType::kBF16, 1.0F);
  EXPECT_EQ(one.exponent, 0);
  EXPECT_EQ(one.significand, 1 << 10);
  const Factor least = Factor::from_bits(DType::kBF16, 0x8001);
  EXPECT_EQ(least.exponent, -126);
  EXPECT_EQ(least.significand, 1 << 3);
  EXPECT_TRUE(least.negative);
  EXPECT_EQ(Factor::from_bits(DType::kF16, 0x0001).exponent, -14);
  EXPECT_EQ(Factor::from_bits(DType::kF16, 0xFC00).kind, Factor::Kind::kInfinity);
  EXPECT_EQ(Factor::from_bits(DType::kBF16, 0x7F81).kind, Factor::Kind::kNaN);
  EXPECT_EQ(Factor::from_bits(DType::kF8E5M2, 0x7C).kind, Factor::Kind::kInfinity);
  EXPECT_EQ(Factor::from_bits(DType::kF8E4M3FN, 0x7F).kind, Factor::Kind::kNaN);
  const Factor largest = Factor::from_bits(DType::kF8E4M3FN, 0x7E);
  EXPECT_EQ(largest.exponent, 8);
  EXPECT_EQ(largest.significand, 14 << 7);
}

// Every finite operand's value is the one base/convert.h reads.
TEST(MatrixUnit, OperandsHaveTheirValues) {
  for (const DType type : {DType::kF16, DType::kBF16, DType::kF8E4M3FN, DType::kF8E5M2}) {
    for (uint32_t bits = 0; bits < (1U << dtype_bits(type)); ++bits) {
      const Factor factor = Factor::from_bits(type, static_cast<uint16_t>(bits));
      const double value = word_to_double(bits, type);
      if (factor.kind == Factor::Kind::kNaN) {
        EXPECT_TRUE(std::isnan(value)) << bits;
      } else if (factor.kind == Factor::Kind::kInfinity) {
        EXPECT_TRUE(std::isinf(value)) << bits;
      } else {
        const double magnitude = std::ldexp(factor.significand, factor.exponent - 10);
        EXPECT_EQ(factor.negative ? -magnitude : magnitude, value) << bits;
      }
    }
  }
}

struct BlockCase {
  const char* name;
  float acc;
  Pairs pairs;
  float expected;
};

TEST(MatrixUnit, Sm90BlockByHand) {
  const std::vector<BlockCase> cases = {
      {"nothing", 0.0F, {}, 0.0F},
      {"one product", 0.0F, {{3.0F, 5.0F}}, 15.0F},
      {"accumulator alone", 0x1.fffffep9F, {}, 0x1.fffffep9F},
      {"exact cancellation is +0", -15.0F, {{3.0F, 5.0F}}, 0.0F},
      // 2^-24 is a multiple of 2^-25 and joins; the sum is cut, not rounded.
      {"the result is truncated", 1.0F, {{0x1p-24F, 1.0F}, {0x1p-25F, 1.0F}}, 1.0F},
      {"toward zero from below too", -1.0F, {{-0x1p-24F, 1.0F}, {-0x1p-25F, 1.0F}}, -1.0F},
      {"two places below f32 are kept", 1.0F, {{0x1p-24F, 1.0F}, {0x1p-24F, 1.0F}}, 0x1.000002p0F},
      {"and four quarters", 1.0F, Pairs(4, {0x1p-25F, 1.0F}), 0x1.000002p0F},
      {"a third place is not", 1.0F, Pairs(16, {0x1p-26F, 1.0F}), 1.0F},
      {"nor on the other side", 1.0F, Pairs(16, {-0x1p-26F, 1.0F}), 1.0F},
      {"less than one place below", 1.0F, {{-0x1p-25F, 1.0F}}, 0x1.fffffep-1F},
      // 1.5·1.5 = 2.25 has exponent 1, but E is 0 here: 2^-25 is kept.
      {"the exponent is not normalised",
       0.0F,
       {{1.5F, 1.5F}, {-2.25F, 1.0F}, {0x1p-24F, 1.0F}},
       0x1p-24F},
      // A large term cuts what small terms had, though it cancels in the end.
      {"alignment before cancellation",
       0.0F,
       {{0x1p30F, 1.0F}, {-0x1p30F, 1.0F}, {1.0F, 1.0F}},
       0.0F},
      {"a cut accumulator", 0x1.fffffep0F, {{0x1p20F, 1.0F}, {-0x1p20F, 1.0F}}, 0x1.f8p0F},
      {"subnormal result", 0.0F, {{0x1p-100F, 0x1p-49F}}, 0x1p-149F},
      {"halves of it add up", 0.0F, Pairs(4, {0x1p-100F, 0x1p-51F}), 0x1p-149F},
      {"and are cut", 0.0F, {{-0x1p-100F, 0x1p-50F}}, 0.0F},
      {"subnormal accumulator", 0x1p-149F, {{0x1p-100F, 0x1p-49F}}, 0x1p-148F},
      {"subnormal factor", 0.0F, {{0x1p-133F, 1.0F}}, 0x1p-133F},
      {"wide products that cancel", 1.0F, {{0x1p100F, 0x1p100F}, {-0x1p100F, 0x1p100F}}, 0.0F},
  };
  for (const BlockCase& c : cases)
    EXPECT_EQ(bits_of(block_of(c.acc, c.pairs)), bits_of(c.expected)) << c.name;
}

// Every decision by itself: what the row says now, and that the field decides it.
TEST(MatrixUnit, Sm90DecisionsStandApart) {
  const Pairs too_large = {{0x1p127F, 2.0F}};
  EXPECT_EQ(block_of(0.0F, too_large), kInf);
  EXPECT_EQ(block_of(0.0F, {{-0x1p127F, 2.0F}}), -kInf);
  AlignedBlock rules = kSm90Block;
  rules.overflow = AlignedBlock::Overflow::kLargest;
  EXPECT_EQ(block_of(0.0F, too_large, rules), std::numeric_limits<float>::max());

  rules = kSm90Block;
  rules.subnormal_result = AlignedBlock::SubnormalResult::kFlush;
  EXPECT_EQ(block_of(0.0F, {{0x1p-100F, 0x1p-40F}}), 0x1p-140F);
  EXPECT_EQ(block_of(0.0F, {{0x1p-100F, 0x1p-40F}}, rules), 0.0F);

  // 8 · 2^-152 = 2^-149; with E = -126 the unit is 2^-151 and every product is cut.
  const Pairs tiny(8, {0x1p-78F, 0x1p-74F});
  rules = kSm90Block;
  rules.least_exponent = -126;
  EXPECT_EQ(block_of(0.0F, tiny), 0x1p-149F);
  EXPECT_EQ(block_of(0.0F, tiny, rules), 0.0F);

  const Pairs minus_zeros(16, {-0.0F, 1.0F});
  rules = kSm90Block;
  rules.zero_result = AlignedBlock::ZeroResult::kAllMinus;
  EXPECT_EQ(bits_of(block_of(-0.0F, minus_zeros)), bits_of(0.0F));
  EXPECT_EQ(bits_of(block_of(-0.0F, minus_zeros, rules)), bits_of(-0.0F));
  EXPECT_EQ(bits_of(block_of(0.0F, minus_zeros, rules)), bits_of(0.0F));

  rules = kSm90Block;
  rules.nan_bits = 0x7FC00000;
  const std::vector<std::pair<float, Pairs>> nan_cases = {
      {0.0F, {{kInf, 0.0F}}},
      {kInf, {{-kInf, 1.0F}}},
      {0.0F, {{kInf, 1.0F}, {-kInf, 1.0F}}},
      {std::nanf(""), {}},
      {kInf, {{std::nanf(""), 0.0F}}},
  };
  for (const auto& [acc, pairs] : nan_cases) {
    EXPECT_EQ(bits_of(block_of(acc, pairs)), kSm90Block.nan_bits);
    EXPECT_EQ(bits_of(block_of(acc, pairs, rules)), 0x7FC00000U);
  }
  EXPECT_EQ(block_of(-kInf, {{0x1p127F, 2.0F}}), -kInf);
  EXPECT_EQ(block_of(1.0F, {{-kInf, -kInf}}), kInf);
  rules.infinities = AlignedBlock::Infinities::kNaN;
  EXPECT_EQ(bits_of(block_of(1.0F, {{-kInf, -kInf}}, rules)), 0x7FC00000U);
}

// With a zero accumulator E is at least −133, so that 2^-158 is the least unit.
TEST(MatrixUnit, Sm90LeastExponent) {
  const auto difference = [](float high, float low) {
    return block_of(0.0F, {{high, 0x1p-74F}, {-low, 0x1p-74F}});
  };
  EXPECT_EQ(difference(0x1p-75F, 0x1p-84F), 0.0F);
  EXPECT_EQ(difference(0x1p-75F, 0x1p-85F), 0x1p-149F);
  EXPECT_EQ(difference(-0x1p-75F, -0x1p-85F), -0x1p-149F);
  // E = −132 by itself: 2^-157 counts, 2^-158 does not.
  EXPECT_EQ(difference(0x1p-58F, 0x1p-83F), 0x1p-132F - 0x1p-149F);
  EXPECT_EQ(difference(0x1p-58F, 0x1p-84F), 0x1p-132F);
  AlignedBlock rules = kSm90Block;
  rules.least_exponent = -200;
  EXPECT_EQ(block_of(0.0F, {{0x1p-75F, 0x1p-74F}, {-0x1p-85F, 0x1p-74F}}, rules), 0.0F);
}

// A block that an H200 computed, as it came: its largest exponent is −134.
TEST(MatrixUnit, Sm90LeastExponentAsMeasured) {
  const Pairs pairs = {
      {0x460p-74F, 0x730p-86F},  {0x650p-91F, 0x6d0p-90F},  {0x6d8p-79F, 0x738p-76F},
      {-0x540p-92F, 0x738p-83F}, {0x778p-85F, 0x720p-85F},  {0x430p-77F, 0x4d0p-89F},
      {-0x5b0p-78F, 0x7e0p-76F}, {0x520p-71F, 0x670p-91F},  {0x698p-89F, 0x600p-83F},
      {-0x638p-86F, 0x780p-76F}, {-0x790p-82F, 0x568p-88F}, {-0x7c0p-72F, 0x6c8p-83F},
      {-0x520p-90F, 0x578p-82F}, {-0x658p-79F, 0x6a8p-75F}, {0x448p-91F, 0x4b0p-90F},
      {-0x568p-90F, 0x6d8p-81F}};
  EXPECT_EQ(bits_of(block_of(-0.0F, pairs)), 0x8002C12DU);
}

TEST(MatrixUnit, FewerBitsOfAResult) {
  AlignedBlock rules = kSm90Block;
  rules.fraction_bits = 13;
  rules.result_fraction_bits = 13;
  EXPECT_EQ(block_of(0x1.fffffep0F, {}, rules), 0x1.fff8p0F);
  EXPECT_EQ(block_of(0x1.fff8p0F, {{1.0F, 1.0F}}, rules), 0x1.7ff8p1F);
  EXPECT_EQ(block_of(0x1p-149F, {}, rules), 0.0F);
  rules.overflow = AlignedBlock::Overflow::kLargest;
  EXPECT_EQ(block_of(0x1p127F, {{0x1p127F, 1.0F}}, rules), 0x1.fff8p127F);
}

float fp8_block(float acc, const Pairs& pairs, DType a_type, DType b_type) {
  std::vector<Factor> a(32);
  std::vector<Factor> b(32);
  for (size_t i = 0; i < pairs.size(); ++i) {
    a[i] = half_factor(a_type, pairs[i].first);
    b[i] = half_factor(b_type, pairs[i].second);
  }
  return find_matrix_unit("sm90", a_type)->add_block(acc, a, b);
}

// What an H200 gave for these blocks, for both types and for one of each.
TEST(MatrixUnit, Sm90Fp8AsMeasured) {
  const std::vector<std::pair<DType, DType>> types = {{DType::kF8E4M3FN, DType::kF8E4M3FN},
                                                      {DType::kF8E5M2, DType::kF8E5M2},
                                                      {DType::kF8E4M3FN, DType::kF8E5M2}};
  struct Case {
    float acc;
    Pairs pairs;
    uint32_t expected;
  };
  const std::vector<Case> cases = {
      {0x1.fffffep0F, {}, 0x3FFFFC00},
      {0x1.fffffep0F, {{0x1p-6F, 0x1p-6F}}, 0x40000000},
      {0x1p-13F, {{1.0F, 1.0F}}, 0x3F800400},
      {0x1p-14F, {{1.0F, 1.0F}}, 0x3F800000},
      {0x1p-13F, {{1.0F, 1.0F}, {-1.0F, 1.0F}}, 0x39000000},
      {0x1p-14F, {{1.0F, 1.0F}, {-1.0F, 1.0F}}, 0},
      // The exponent of 1.5 · 1.5 is 0.
      {0x1p-13F, {{1.5F, 1.5F}, {-1.5F, 1.5F}}, 0x39000000},
      {1.0F, Pairs(2, {0x1p-6F, 0x1p-7F}), 0x3F800800},
      {1.0F, Pairs(2, {0x1p-7F, 0x1p-7F}), 0x3F800000},
      {std::nanf(""), {}, 0x7FFFFFFF},
      {-0.0F, {}, 0},
      {0x1p-149F, {}, 0},
      {0x1.fffffcp-127F, {}, 0x007FFC00},
      {std::numeric_limits<float>::max(), {{-1.0F, 1.0F}}, 0x7F7FFC00},
  };
  for (const auto& [a, b] : types)
    for (size_t i = 0; i < cases.size(); ++i)
      EXPECT_EQ(bits_of(fp8_block(cases[i].acc, cases[i].pairs, a, b)), cases[i].expected) << i;
}

// All 32 products are one block: a large one that cancels cuts those at the other end.
TEST(MatrixUnit, Sm90Fp8BlockIsWhole) {
  for (const size_t at : {size_t{1}, size_t{16}, size_t{30}}) {
    Pairs pairs(32, {0.0F, 0.0F});
    pairs[0] = {256.0F, 1.0F};
    pairs[at] = {-256.0F, 1.0F};
    pairs[31] = {0x1p-6F, 0.5F};
    EXPECT_EQ(fp8_block(0.0F, pairs, DType::kF8E4M3FN, DType::kF8E4M3FN), 0.0F) << at;
    pairs[31] = {0x1p-5F, 1.0F};
    EXPECT_EQ(fp8_block(0.0F, pairs, DType::kF8E4M3FN, DType::kF8E4M3FN), 0x1p-5F) << at;
  }
}

// A term of the second opinion: a whole number of the least unit any term of its block has.
#if defined(__SIZEOF_INT128__)
__extension__ using Wide = __int128;

struct WideTerm {
  Wide units;  // of 2^-40
  int exponent;
};

WideTerm wide_term(double value, int exponent) {
  return {static_cast<Wide>(std::ldexp(value, 40)), exponent};
}

int exponent_of(double value, int least) {
  return value == 0 ? least : std::max(std::ilogb(value), least);
}

float block_in_wide_integers(float acc, const std::vector<float>& a, const std::vector<float>& b,
                             int least) {
  std::vector<WideTerm> terms = {wide_term(acc, exponent_of(acc, -126))};
  for (size_t i = 0; i < a.size(); ++i)
    terms.push_back(wide_term(static_cast<double>(a[i]) * b[i],
                              exponent_of(a[i], least) + exponent_of(b[i], least)));
  std::erase_if(terms, [](const WideTerm& term) { return term.units == 0; });
  if (terms.empty()) return 0.0F;
  int largest = -1000;
  for (const WideTerm& term : terms) largest = std::max(largest, term.exponent);
  Wide sum = 0;
  const int dropped = largest - 25 + 40;
  const Wide unit = dropped > 0 ? static_cast<Wide>(1) << dropped : 1;
  for (const WideTerm& term : terms) sum += term.units - term.units % unit;
  // The sum has at most 31 bits above `unit`, so the double is exact.
  const double exact = std::ldexp(static_cast<double>(sum), -40);
  const auto nearest = static_cast<float>(exact);
  return std::abs(nearest) > std::abs(exact) ? std::nextafter(nearest, 0.0F) : nearest;
}

TEST(MatrixUnit, Sm90BlockMatchesWideIntegers) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> exponents(-10, 10);
  std::uniform_real_distribution<float> significands(-2.0F, 2.0F);
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const int least = type == DType::kF16 ? -14 : -126;
    for (int round = 0; round < 20000; ++round) {
      std::vector<float> a;
      std::vector<float> b;
      Operands operands;
      for (int i = 0; i < 16; ++i) {
        for (auto [values, factors] : {std::pair(&a, &operands.a), std::pair(&b, &operands.b)}) {
          const uint16_t bits =
              half_bits(type, std::ldexp(significands(random), exponents(random)));
          values->push_back(type == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits));
          factors->push_back(Factor::from_bits(type, bits));
        }
      }
      // Few enough places that the second opinion's units hold the accumulator.
      const float acc = std::ldexp(std::round(significands(random) * 0x1p20F), -20);
      const float got = sm90_block(acc, std::span<const Factor, 16>(operands.a),
                                   std::span<const Factor, 16>(operands.b));
      ASSERT_EQ(bits_of(got), bits_of(block_in_wide_integers(acc, a, b, least))) << round;
    }
  }
}
#endif

Operands random_operands(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Pairs pairs(n);
  for (auto& [x, y] : pairs) {
    x = normal(random);
    y = normal(random);
  }
  return operands_of(DType::kBF16, pairs);
}

float fma_chain(const Operands& operands) {
  float sum = 0.0F;
  const auto value = [](const Factor& f) {
    const auto magnitude = static_cast<float>(std::ldexp(f.significand, f.exponent - 10));
    return f.negative ? -magnitude : magnitude;
  };
  for (size_t i = 0; i < operands.a.size(); ++i)
    sum = std::fma(value(operands.a[i]), value(operands.b[i]), sum);
  return sum;
}

TEST(MatrixUnit, TheFmaChainGivesOtherBits) {
  EXPECT_EQ(std::fma(0x1p-24F, 1.5F, 1.0F), 0x1.000002p0F);
  EXPECT_EQ(block_of(1.0F, {{0x1p-24F, 1.5F}}), 1.0F);
  const MatrixUnit sm90 = *find_matrix_unit("sm90", DType::kBF16);
  int other = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Operands operands = random_operands(512, seed);
    const float chain = fma_chain(operands);
    const float unit = named_order_sum(sm90, operands.a, operands.b);
    EXPECT_NEAR(unit, chain, 2e-4F);
    other += bits_of(unit) != bits_of(chain) ? 1 : 0;
  }
  EXPECT_GT(other, 50);
}

TEST(MatrixUnit, OrderCountsBetweenBlocksAlone) {
  const MatrixUnit sm90 = *find_matrix_unit("sm90", DType::kBF16);
  std::mt19937 random(11);
  int other = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Operands operands = random_operands(256, 1000 + seed);
    const float sum = named_order_sum(sm90, operands.a, operands.b);
    std::vector<size_t> order(256);
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t begin = 0; begin < order.size(); begin += 16)
      std::shuffle(order.begin() + static_cast<std::ptrdiff_t>(begin),
                   order.begin() + static_cast<std::ptrdiff_t>(begin + 16), random);
    Operands inside = operands;
    Operands blocks = operands;
    for (size_t i = 0; i < order.size(); ++i) {
      inside.a[i] = operands.a[order[i]];
      inside.b[i] = operands.b[order[i]];
      const size_t from = (15 - i / 16) * 16 + i % 16;
      blocks.a[i] = operands.a[from];
      blocks.b[i] = operands.b[from];
    }
    EXPECT_EQ(bits_of(named_order_sum(sm90, inside.a, inside.b)), bits_of(sum));
    EXPECT_EQ(bits_of(named_order_sum(sm90, operands.b, operands.a)), bits_of(sum));
    other += bits_of(named_order_sum(sm90, blocks.a, blocks.b)) != bits_of(sum) ? 1 : 0;
  }
  EXPECT_GT(other, 10);
}

TEST(MatrixUnit, SegmentsJoinByAddition) {
  const MatrixUnit sm90 = *find_matrix_unit("sm90", DType::kBF16);
  const auto segment = static_cast<size_t>(sm90.segment);
  const Operands operands = random_operands(2 * segment + 5, 3);
  float total = 0.0F;
  for (size_t begin = 0; begin < operands.a.size(); begin += segment) {
    const size_t count = std::min(segment, operands.a.size() - begin);
    total += named_order_sum(sm90, std::span(operands.a).subspan(begin, count),
                             std::span(operands.b).subspan(begin, count));
  }
  EXPECT_EQ(bits_of(named_order_sum(sm90, operands.a, operands.b)), bits_of(total));
}

TEST(MatrixUnit, ShortSumsArePaddedWithZeros) {
  const MatrixUnit sm90 = *find_matrix_unit("sm90", DType::kBF16);
  EXPECT_EQ(bits_of(named_order_sum(sm90, {}, {})), bits_of(0.0F));
  for (const size_t n : {1, 15, 16, 17, 40}) {
    Operands operands = random_operands(n, static_cast<unsigned>(n));
    const float sum = named_order_sum(sm90, operands.a, operands.b);
    operands.a.resize((n + 15) / 16 * 16);
    operands.b.resize(operands.a.size());
    EXPECT_EQ(bits_of(named_order_sum(sm90, operands.a, operands.b)), bits_of(sum)) << n;
  }
}

TEST(MatrixUnit, Table) {
  for (const MatrixUnit& unit : matrix_units()) {
    EXPECT_GT(unit.block, 0);
    EXPECT_EQ(unit.segment % unit.block, 0) << unit.name;
    EXPECT_GE(unit.segment, 256) << unit.name;
    EXPECT_TRUE(std::has_single_bit(static_cast<unsigned>(unit.segment))) << unit.name;
    EXPECT_FALSE(unit.dtypes.empty()) << unit.name;
    for (const DType type : unit.dtypes)
      EXPECT_EQ(find_matrix_unit(unit.name, type)->block, unit.block) << unit.name;
  }
  EXPECT_EQ(matrix_unit_names(), std::vector<std::string_view>{"sm90"});
  const MatrixUnit sm90 = *find_matrix_unit("sm90", DType::kBF16);
  EXPECT_EQ(sm90.block, 16);
  EXPECT_TRUE(sm90.covers(DType::kBF16));
  EXPECT_TRUE(sm90.covers(DType::kF16));
  EXPECT_FALSE(sm90.covers(DType::kF32));
  EXPECT_FALSE(sm90.covers(DType::kF8E4M3FN));
  const MatrixUnit fp8 = *find_matrix_unit("sm90", DType::kF8E4M3FN);
  EXPECT_EQ(fp8.block, 32);
  EXPECT_TRUE(fp8.covers(DType::kF8E5M2));
  EXPECT_FALSE(fp8.covers(DType::kBF16));
  EXPECT_FALSE(find_matrix_unit("sm90", DType::kF32).has_value());
  EXPECT_FALSE(find_matrix_unit("sm80", DType::kBF16).has_value());
}

}  // namespace
}  // namespace pyc
