// Rounding to and from the floats narrower than f32, against NarrowFormat.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/convert.h"
#include "narrow_formats.h"
#include "sanitizers.h"

namespace pyc {
namespace {

constexpr float kInfF32 = std::numeric_limits<float>::infinity();
constexpr double kInfF64 = std::numeric_limits<double>::infinity();

uint32_t from_f32(float x, DType to) {
  switch (to) {
    case DType::kF8E4M3FN:
      return f32_to_f8e4m3fn(x);
    case DType::kF8E5M2:
      return f32_to_f8e5m2(x);
    case DType::kF16:
      return f32_to_f16(x);
    case DType::kBF16:
      return f32_to_bf16(x);
    default:
      return static_cast<uint32_t>(convert_word(std::bit_cast<uint32_t>(x), DType::kF32, to));
  }
}

uint32_t from_f64(double x, DType to) {
  switch (to) {
    case DType::kF8E4M3FN:
      return f64_to_f8e4m3fn(x);
    case DType::kF8E5M2:
      return f64_to_f8e5m2(x);
    case DType::kF16:
      return f64_to_f16(x);
    case DType::kBF16:
      return f64_to_bf16(x);
    default:
      return static_cast<uint32_t>(word_from_double(x, to));
  }
}

float to_f32(uint32_t code, DType from) {
  switch (from) {
    case DType::kF8E4M3FN:
      return f8e4m3fn_to_f32(static_cast<uint8_t>(code));
    case DType::kF8E5M2:
      return f8e5m2_to_f32(static_cast<uint8_t>(code));
    case DType::kF16:
      return f16_to_f32(static_cast<uint16_t>(code));
    case DType::kBF16:
      return bf16_to_f32(static_cast<uint16_t>(code));
    default:
      return std::bit_cast<float>(static_cast<uint32_t>(convert_word(code, from, DType::kF32)));
  }
}

class NarrowTest : public testing::TestWithParam<NarrowFormat> {
 protected:
  // Checks x and -x. Plain comparisons: gtest's macros are too slow for millions of samples.
  void check_f32(float x) {
    if (from_f32(x, type_) == format_.nearest<double>(x) &&
        from_f32(-x, type_) == format_.nearest<double>(-x)) {
      return;
    }
    ADD_FAILURE() << dtype_name(type_) << " of f32 ±" << std::hexfloat << x << ": found "
                  << std::hex << from_f32(x, type_) << " and " << from_f32(-x, type_)
                  << ", expected " << format_.nearest<double>(x);
  }

  void check_f64(double x) {
    if (from_f64(x, type_) == format_.nearest(x) && from_f64(-x, type_) == format_.nearest(-x)) {
      return;
    }
    ADD_FAILURE() << dtype_name(type_) << " of f64 ±" << std::hexfloat << x << ": found "
                  << std::hex << from_f64(x, type_) << " and " << from_f64(-x, type_)
                  << ", expected " << format_.nearest(x);
  }

  const NarrowFormat& format_ = GetParam();
  const DType type_ = GetParam().type();
};

TEST_P(NarrowTest, EveryCodeDecodesExactly) {
  for (uint32_t code = 0; code < format_.code_count(); ++code) {
    const uint32_t bits = std::bit_cast<uint32_t>(to_f32(code, type_));
    const uint32_t expected =
        format_.is_nan(code) ? 0x7FC00000
                             : std::bit_cast<uint32_t>(static_cast<float>(format_.value(code)));
    ASSERT_EQ(bits, expected) << "code " << std::hex << code;
  }
}

TEST_P(NarrowTest, EveryCodeRoundTrips) {
  for (uint32_t code = 0; code < format_.code_count(); ++code) {
    const float x = to_f32(code, type_);
    const uint32_t expected = format_.is_nan(code) ? format_.nan() : code;
    ASSERT_EQ(from_f32(x, type_), expected) << "code " << std::hex << code;
    ASSERT_EQ(from_f64(x, type_), expected) << "code " << std::hex << code;
  }
}

TEST_P(NarrowTest, MidpointsAndTheirNeighboursRoundToNearestEven) {
  for (const double border : format_.borders()) {
    const float narrow = static_cast<float>(border);
    ASSERT_EQ(narrow, border) << "midpoints are exact in f32";
    check_f32(narrow);
    check_f32(std::nextafterf(narrow, kInfF32));
    check_f32(std::nextafterf(narrow, -kInfF32));
    // The f64 neighbours would tie, the wrong way half the time, if they went through f32.
    check_f64(border);
    check_f64(std::nextafter(border, kInfF64));
    check_f64(std::nextafter(border, -kInfF64));
  }
}

TEST_P(NarrowTest, F64NearF32MidpointsRoundsOnce) {
  for (const double border : format_.borders()) {
    for (const double factor : {1 - 0x1p-25, 1 - 0x1p-30, 1 + 0x1p-30, 1 + 0x1p-25}) {
      check_f64(border * factor);
    }
  }
}

TEST_P(NarrowTest, ExtremesOfTheSourceTypes) {
  using F32 = std::numeric_limits<float>;
  using F64 = std::numeric_limits<double>;
  for (const float x : {0.0F, F32::denorm_min(), F32::min(), std::nextafterf(F32::min(), 0.0F),
                        F32::max(), F32::infinity()}) {
    check_f32(x);
  }
  for (const double x : {0.0, F64::denorm_min(), F64::min(), std::nextafter(F64::min(), 0.0),
                         F64::max(), F64::infinity()}) {
    check_f64(x);
  }
}

TEST_P(NarrowTest, NanBecomesTheCanonicalOne) {
  for (const uint32_t bits : {0x7FC00000U, 0xFFC00000U, 0x7F800001U, 0xFF800001U, 0x7FFFFFFFU,
                              0xFFFFFFFFU, 0x7FA00000U}) {
    EXPECT_EQ(from_f32(std::bit_cast<float>(bits), type_), format_.nan()) << std::hex << bits;
  }
  for (const uint64_t bits : {0x7FF8000000000000U, 0xFFF8000000000000U, 0x7FF0000000000001U,
                              0xFFF0000000000001U, 0xFFFFFFFFFFFFFFFFU}) {
    EXPECT_EQ(from_f64(std::bit_cast<double>(bits), type_), format_.nan()) << std::hex << bits;
  }
}

// One random pattern out of each of equal ranges of patterns: every exponent gets its share.
TEST_P(NarrowTest, StratifiedF32Patterns) {
  constexpr int kRangeBits = kSanitized ? 13 : 9;
  std::minstd_rand random(1);
  for (uint32_t range = 0; range < (uint32_t{1} << (31 - kRangeBits)); ++range) {
    const uint32_t offset = static_cast<uint32_t>(random()) >> (31 - kRangeBits);
    const float x = std::bit_cast<float>((range << kRangeBits) | offset);
    if (!std::isnan(x)) check_f32(x);
  }
}

TEST_P(NarrowTest, StratifiedF64Patterns) {
  constexpr int kPerExponent = kSanitized ? 400 : 16384;
  std::mt19937_64 random(2);
  // From below half of the smallest bf16 to beyond its largest.
  for (int exponent = -140; exponent <= 130; ++exponent) {
    for (int i = 0; i < kPerExponent; ++i) {
      const uint64_t fraction = random() >> 12;
      const uint64_t field = static_cast<uint64_t>(exponent) + 1023;
      check_f64(std::bit_cast<double>((field << 52) | fraction));
    }
  }
  for (int i = 0; i < kPerExponent * 4; ++i) {
    const double x = std::bit_cast<double>(random() >> 1);
    if (!std::isnan(x)) check_f64(x);
  }
}

INSTANTIATE_TEST_SUITE_P(All, NarrowTest, testing::ValuesIn(narrow_formats()),
                         [](const auto& row) { return std::string(dtype_name(row.param.type())); });

TEST(ConvertNarrow, E8M0IsAPowerOfTwo) {
  for (uint32_t code = 0; code < 255; ++code) {
    const double power = std::ldexp(1.0, static_cast<int>(code) - 127);
    EXPECT_EQ(word_to_double(code, DType::kF8E8M0), power);
    EXPECT_EQ(from_f64(power, DType::kF8E8M0), code);
    EXPECT_EQ(from_f32(static_cast<float>(power), DType::kF8E8M0), code);
    const uint32_t next = code == 254 ? 255 : code + 1;
    EXPECT_EQ(from_f64(std::nextafter(power, kInfF64), DType::kF8E8M0), next);
    EXPECT_EQ(from_f32(std::nextafterf(static_cast<float>(power), kInfF32), DType::kF8E8M0), next);
    EXPECT_EQ(from_f64(-power, DType::kF8E8M0), 255U);
  }
  EXPECT_TRUE(std::isnan(word_to_double(255, DType::kF8E8M0)));
  for (const double x : {0.0, -0.0, 0x0.fffffp-127, 5e-324, kInfF64, -kInfF64, std::nan("")}) {
    EXPECT_EQ(from_f64(x, DType::kF8E8M0), 255U) << x;
    EXPECT_EQ(from_f32(static_cast<float>(x), DType::kF8E8M0), 255U) << x;
  }
}

TEST(ConvertNarrow, KnownCodes) {
  EXPECT_EQ(f32_to_f16(1.0F), 0x3C00);
  EXPECT_EQ(f32_to_f16(-2.0F), 0xC000);
  EXPECT_EQ(f32_to_f16(65504.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65519.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(0x1p-24F), 0x0001);
  EXPECT_EQ(f32_to_f16(0x1p-25F), 0x0000);
  EXPECT_EQ(f32_to_bf16(1.0F), 0x3F80);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(f32_to_f8e4m3fn(448.0F), 0x7E);
  EXPECT_EQ(f32_to_f8e4m3fn(464.0F), 0x7E);
  EXPECT_EQ(f32_to_f8e4m3fn(std::nextafterf(464.0F, kInfF32)), 0x7F);
  EXPECT_EQ(f32_to_f8e4m3fn(-kInfF32), 0x7F);
  EXPECT_EQ(f32_to_f8e4m3fn(-448.0F), 0xFE);
  EXPECT_EQ(f32_to_f8e5m2(57344.0F), 0x7B);
  EXPECT_EQ(f32_to_f8e5m2(61440.0F), 0x7C);
  EXPECT_EQ(f32_to_f8e5m2(-kInfF32), 0xFC);
  EXPECT_EQ(from_f32(240.0F, DType::kF8E4M3FNUZ), 0x7FU);
  EXPECT_EQ(from_f32(248.0F, DType::kF8E4M3FNUZ), 0x80U);
  EXPECT_EQ(from_f32(-0.0F, DType::kF8E5M2FNUZ), 0U);
  EXPECT_EQ(from_f32(-0x1p-17F, DType::kF8E5M2FNUZ), 0x81U);
  EXPECT_EQ(from_f32(-0x1p-18F, DType::kF8E5M2FNUZ), 0U);
  EXPECT_EQ(from_f32(-2.5F, DType::kF4E2M1), 0xCU);
  EXPECT_EQ(from_f32(-kInfF32, DType::kF4E2M1), 0xFU);
  EXPECT_EQ(from_f32(-0.0F, DType::kF4E2M1), 0x8U);
  // 1 + 2^-11 is a tie of f16; the rest is lost in f32.
  EXPECT_EQ(f64_to_f16(1 + 0x1p-11), 0x3C00);
  EXPECT_EQ(f64_to_f16(1 + 0x1p-11 + 0x1p-40), 0x3C01);
}

// Every code of the half type, the numbers half way to the next one and their neighbours, all
// exponents with random fractions; from an odd address.
TEST(ConvertNarrow, ManyAtOnceAsOneByOne) {
  for (const DType to : {DType::kF16, DType::kBF16}) {
    std::vector<uint32_t> in;
    for (uint32_t code = 0; code < 0x10000; ++code) {
      const auto half = static_cast<uint16_t>(code);
      const auto bits =
          std::bit_cast<uint32_t>(to == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half));
      const uint32_t middle = uint32_t{1} << (to == DType::kF16 ? 12 : 15);
      for (const uint32_t x : {bits, bits + middle - 1, bits + middle, bits + middle + 1}) {
        in.push_back(x);
      }
    }
    std::mt19937 rng(7);
    for (uint32_t field = 0; field < 0x200; ++field) {
      for (int k = 0; k < 100; ++k) in.push_back(field << 23 | (rng() & 0x7FFFFF));
    }
    std::vector<std::byte> bytes(in.size() * 4 + 1);
    std::memcpy(bytes.data() + 1, in.data(), in.size() * 4);
    std::vector<std::byte> out(in.size() * 2 + 1);
    EXPECT_TRUE(narrow_floats(bytes.data() + 1, in.size(), to, out.data() + 1));
    for (size_t i = 0; i < in.size(); ++i) {
      uint16_t found = 0;
      std::memcpy(&found, out.data() + 1 + i * 2, 2);
      ASSERT_EQ(found, from_f32(std::bit_cast<float>(in[i]), to)) << std::hex << in[i];
    }
  }
}

TEST(ConvertNarrow, OnlyFiniteNumbersOverflow) {
  struct Case {
    float x;
    DType to;
    bool overflows;
  };
  for (const Case& c : {Case{65519.0F, DType::kF16, false}, Case{65520.0F, DType::kF16, true},
                        Case{-65520.0F, DType::kF16, true}, Case{kInfF32, DType::kF16, false},
                        Case{-kInfF32, DType::kBF16, false}, Case{0.0F, DType::kF16, false},
                        Case{std::numeric_limits<float>::max(), DType::kBF16, true},
                        Case{std::numeric_limits<float>::quiet_NaN(), DType::kF16, false}}) {
    const auto in = std::bit_cast<std::array<std::byte, 4>>(c.x);
    std::array<std::byte, 2> out{};
    EXPECT_EQ(narrow_floats(in.data(), 1, c.to, out.data()), c.overflows) << c.x;
  }
}

}  // namespace
}  // namespace pyc
