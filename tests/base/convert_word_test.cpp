// convert_word between all pairs of types, and its relatives.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "base/convert.h"
#include "narrow_formats.h"

namespace pyc {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<DType> all_dtypes() {
  std::vector<DType> types;
  types.reserve(kDTypeCount);
  for (int i = 0; i < kDTypeCount; ++i) types.push_back(static_cast<DType>(i));
  return types;
}

const NarrowFormat& narrow_format(DType t) {
  for (const NarrowFormat& format : narrow_formats()) {
    if (format.type() == t) return format;
  }
  throw std::logic_error("no narrow type");
}

int bits_of(DType t) { return static_cast<int>(dtype_bits(t)); }

// Holds every element of every type exactly.
long double value_of(Word x, DType t) {
  if (t == DType::kF8E8M0) return x == 255 ? kNan : std::ldexp(1.0, static_cast<int>(x) - 127);
  if (is_narrow_float(t)) {
    const NarrowFormat& format = narrow_format(t);
    const uint32_t code = static_cast<uint32_t>(x);
    return format.is_nan(code) ? kNan : format.value(code);
  }
  if (t == DType::kF32) return std::bit_cast<float>(static_cast<uint32_t>(x));
  if (t == DType::kF64) return std::bit_cast<double>(x);
  return is_signed_int(t) ? static_cast<long double>(static_cast<int64_t>(x))
                          : static_cast<long double>(x);
}

long double int_min(DType t) { return is_signed_int(t) ? -std::ldexp(1.0L, bits_of(t) - 1) : 0.0L; }

long double int_max(DType t) {
  return std::ldexp(1.0L, is_signed_int(t) ? bits_of(t) - 1 : bits_of(t)) - 1;
}

// The word of an integer inside the range of `t`.
Word int_word(long double x) {
  return x < 0 ? static_cast<Word>(static_cast<int64_t>(x)) : static_cast<Word>(x);
}

// The low bits of x, extended: by arithmetic modulo 2^width.
Word wrapped(Word x, DType to) {
  const int width = bits_of(to);
  if (width == 64) return x;
  const Word modulus = Word{1} << width;
  const Word low = x % modulus;
  return is_signed_int(to) && low >= modulus / 2 ? low - modulus : low;
}

Word power_above(long double value) {
  for (Word code = 0; code < 255; ++code) {
    if (value >= 0x1p-127L && value <= value_of(code, DType::kF8E8M0)) return code;
  }
  return 255;
}

Word expected(Word x, DType from, DType to) {
  const long double value = value_of(x, from);
  if (from == to) return x;
  if (to == DType::kBool) return value != 0 ? 1 : 0;
  if (to == DType::kF8E8M0) return power_above(value);
  if (is_narrow_float(to)) return narrow_format(to).nearest(value);
  if (to == DType::kF32) {
    return std::isnan(value) ? 0x7FC00000 : std::bit_cast<uint32_t>(static_cast<float>(value));
  }
  if (to == DType::kF64) {
    return std::isnan(value) ? 0x7FF8000000000000
                             : std::bit_cast<uint64_t>(static_cast<double>(value));
  }
  if (!is_float(from)) return wrapped(x, to);
  if (std::isnan(value)) return 0;
  return int_word(std::clamp(std::trunc(value), int_min(to), int_max(to)));
}

void add_float_samples(DType t, std::vector<Word>* words) {
  std::vector<double> values = {0.0, 0.5, 0.99, 1.0, 1.5, 2.5, 1e-3, 1e-40, 1e-310, 3e38, kInf};
  for (int exponent = 1; exponent <= 66; ++exponent) {
    const double power = std::ldexp(1.0, exponent);
    values.insert(values.end(), {power, power - 1, power + 1, power - 0.5, std::nextafter(power, 0),
                                 std::nextafter(power, kInf)});
  }
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) values.push_back(std::ldexp(1.0 + i / 300.0, i % 280 - 140));
  for (const double x : values) {
    for (const double y : {x, -x}) {
      words->push_back(t == DType::kF64 ? std::bit_cast<Word>(y)
                                        : std::bit_cast<uint32_t>(static_cast<float>(y)));
    }
  }
  for (int i = 0; i < 1000; ++i) words->push_back(random() >> (t == DType::kF64 ? 0 : 32));
}

void add_int_samples(DType t, std::vector<Word>* words) {
  std::mt19937_64 random(4);
  std::vector<Word> values = {0};
  for (int bit = 0; bit < 64; ++bit) {
    const Word power = Word{1} << bit;
    for (const Word half :
         {Word{0}, power >> 4, power >> 8, power >> 11, power >> 24, power >> 53}) {
      for (const Word near : {~Word{0}, Word{0}, Word{1}}) values.push_back(power + half + near);
    }
    values.push_back(random() >> bit);
  }
  for (const Word x : values) {
    words->push_back(wrapped(x, t));
    words->push_back(wrapped(0 - x, t));
  }
}

// All elements of 8-bit types, a dense choice of 16-bit ones, the edges of the others.
std::vector<Word> samples(DType t) {
  std::vector<Word> words;
  if (t == DType::kBool) return {0, 1};
  if (bits_of(t) <= 16) {
    const uint32_t step = bits_of(t) <= 8 ? 1 : 5;
    for (uint32_t code = 0; code < (1U << bits_of(t)); code += step) {
      words.push_back(is_signed_int(t) ? wrapped(code, t) : code);
    }
  }
  if (is_int(t)) add_int_samples(t, &words);
  if (t == DType::kF32 || t == DType::kF64) add_float_samples(t, &words);
  return words;
}

TEST(ConvertWord, AllPairsOfTypes) {
  for (const DType from : all_dtypes()) {
    const std::vector<Word> words = samples(from);
    for (const DType to : all_dtypes()) {
      for (const Word x : words) {
        ASSERT_EQ(convert_word(x, from, to), expected(x, from, to))
            << dtype_name(from) << " -> " << dtype_name(to) << " of " << std::hex << x;
      }
    }
  }
}

TEST(ConvertWord, FloatToIntTruncatesAndSaturates) {
  const struct {
    double x;
    DType to;
    int64_t result;
  } rows[] = {
      {kNan, DType::kI32, 0},
      {-kNan, DType::kU8, 0},
      {-0.0, DType::kI64, 0},
      {2.9, DType::kI8, 2},
      {-2.9, DType::kI8, -2},
      {-0.9, DType::kU8, 0},
      {7.9, DType::kI4, 7},
      {8.0, DType::kI4, 7},
      {-8.9, DType::kI4, -8},
      {-kInf, DType::kI4, -8},
      {kNan, DType::kI4, 0},
      {16.0, DType::kU4, 15},
      {-1.0, DType::kU4, 0},
      {1.9, DType::kI2, 1},
      {-2.5, DType::kI2, -2},
      {3.9, DType::kU2, 3},
      {127.9, DType::kI8, 127},
      {128.0, DType::kI8, 127},
      {-128.9, DType::kI8, -128},
      {-129.0, DType::kI8, -128},
      {255.9, DType::kU8, 255},
      {256.0, DType::kU8, 255},
      {-1.0, DType::kU64, 0},
      {40000.0, DType::kI16, 32767},
      {-40000.0, DType::kI16, -32768},
      {70000.0, DType::kU16, 65535},
      {2147483647.0, DType::kI32, 2147483647},
      {2147483648.0, DType::kI32, 2147483647},
      {-2147483648.5, DType::kI32, -2147483648},
      {4294967295.5, DType::kU32, 4294967295},
      {4294967296.0, DType::kU32, 4294967295},
      {0x1p63, DType::kI64, std::numeric_limits<int64_t>::max()},
      {0x1.fffffffffffffp62, DType::kI64, 0x7FFFFFFFFFFFFC00},
      {-0x1p63, DType::kI64, std::numeric_limits<int64_t>::min()},
      {-0x1.0000000000001p63, DType::kI64, std::numeric_limits<int64_t>::min()},
      {kInf, DType::kI64, std::numeric_limits<int64_t>::max()},
      {-kInf, DType::kI64, std::numeric_limits<int64_t>::min()},
      {0x1p63, DType::kU64, std::numeric_limits<int64_t>::min()},  // 2^63 as a word
      {0x1p64, DType::kU64, -1},                                   // 2^64 - 1 as a word
      {kInf, DType::kU64, -1},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(static_cast<int64_t>(word_from_double(row.x, row.to)), row.result)
        << row.x << " -> " << dtype_name(row.to);
  }
}

TEST(ConvertWord, IntToIntKeepsTheLowBits) {
  EXPECT_EQ(word_from_int(300, DType::kU8), 44U);
  EXPECT_EQ(word_from_int(200, DType::kI8), static_cast<Word>(-56));
  EXPECT_EQ(word_from_int(24, DType::kI4), static_cast<Word>(-8));
  EXPECT_EQ(word_from_int(-1, DType::kU4), 15U);
  EXPECT_EQ(word_from_int(6, DType::kI2), static_cast<Word>(-2));
  EXPECT_EQ(word_from_int(7, DType::kU2), 3U);
  EXPECT_EQ(word_from_int(-1, DType::kU32), 0xFFFFFFFFU);
  EXPECT_EQ(word_from_int(std::numeric_limits<int64_t>::min(), DType::kI32), 0U);
  EXPECT_EQ(convert_word(0xFFFFFFFF, DType::kU32, DType::kI32), ~Word{0});
  EXPECT_EQ(convert_word(~Word{0}, DType::kI8, DType::kU64), ~Word{0});
}

TEST(ConvertWord, IntToFloatRoundsOnce) {
  // A tie of bf16 but for the last bit, which f32 would lose.
  const int64_t near_tie = (int64_t{1} << 32) + (int64_t{1} << 24);
  EXPECT_EQ(word_from_int(near_tie, DType::kBF16), 0x4F80U);
  EXPECT_EQ(word_from_int(near_tie + 1, DType::kBF16), 0x4F81U);
  EXPECT_EQ(word_from_int(-near_tie - 1, DType::kBF16), 0xCF81U);
  EXPECT_EQ(word_from_int(65519, DType::kF16), 0x7BFFU);
  EXPECT_EQ(word_from_int(65520, DType::kF16), 0x7C00U);
  EXPECT_EQ(word_from_int(-65520, DType::kF16), 0xFC00U);
  EXPECT_EQ(word_from_int(464, DType::kF8E4M3FN), 0x7EU);
  EXPECT_EQ(word_from_int(-465, DType::kF8E4M3FN), 0x7FU);
  EXPECT_EQ(word_from_int((1 << 24) + 1, DType::kF32), std::bit_cast<uint32_t>(0x1p24F));
  EXPECT_EQ(convert_word(~Word{0}, DType::kU64, DType::kF64), std::bit_cast<Word>(0x1p64));
  EXPECT_EQ(convert_word(~Word{0}, DType::kU64, DType::kF32), std::bit_cast<uint32_t>(0x1p64F));
  EXPECT_EQ(word_from_int(std::numeric_limits<int64_t>::min(), DType::kF32),
            std::bit_cast<uint32_t>(-0x1p63F));
}

TEST(ConvertWord, BoolIsWhatDiffersFromZero) {
  EXPECT_EQ(word_from_double(kNan, DType::kBool), 1U);
  EXPECT_EQ(word_from_double(-0.0, DType::kBool), 0U);
  EXPECT_EQ(word_from_double(5e-324, DType::kBool), 1U);
  EXPECT_EQ(convert_word(0x80, DType::kF8E4M3FN, DType::kBool), 0U);
  EXPECT_EQ(convert_word(0x8001, DType::kF16, DType::kBool), 1U);
  EXPECT_EQ(word_from_int(256, DType::kBool), 1U);
  EXPECT_EQ(word_from_int(-1, DType::kBool), 1U);
  EXPECT_EQ(convert_word(1, DType::kBool, DType::kF16), 0x3C00U);
  EXPECT_EQ(convert_word(1, DType::kBool, DType::kI64), 1U);
}

TEST(ConvertWord, NanIsCanonicalExceptInPlace) {
  const Word payload = 0xFFC12345;
  EXPECT_EQ(convert_word(payload, DType::kF32, DType::kF32), payload);
  EXPECT_EQ(convert_word(payload, DType::kF32, DType::kF64), 0x7FF8000000000000U);
  EXPECT_EQ(convert_word(0xFFF8000000000001, DType::kF64, DType::kF32), 0x7FC00000U);
  EXPECT_EQ(convert_word(0xFE01, DType::kF16, DType::kBF16), 0x7FC0U);
  EXPECT_EQ(convert_word(0xFF, DType::kF8E4M3FN, DType::kF8E5M2), 0x7EU);
}

TEST(ConvertWord, WordToDouble) {
  EXPECT_EQ(word_to_double(0xC000, DType::kF16), -2.0);
  EXPECT_EQ(word_to_double(static_cast<Word>(-3), DType::kI16), -3.0);
  EXPECT_EQ(word_to_double(~Word{0}, DType::kU64), 0x1p64);
  EXPECT_EQ(word_to_double((Word{1} << 53) + 1, DType::kI64), 0x1p53);
  EXPECT_TRUE(std::isnan(word_to_double(0x7F, DType::kF8E4M3FN)));
}

TEST(ConvertWord, LoadAndStoreRoundTripAtAnyAlignment) {
  for (const DType t : all_dtypes()) {
    for (const Word x : samples(t)) {
      unsigned char memory[18];
      std::memset(memory, 0xEE, sizeof(memory));
      store_word(memory + 3, t, x);
      ASSERT_EQ(load_word(memory + 3, t), x) << dtype_name(t);
      ASSERT_EQ(memory[2], 0xEE);
      ASSERT_EQ(memory[3 + dtype_size(t)], 0xEE);
    }
  }
}

TEST(ConvertWord, LoadExtendsBySign) {
  const uint8_t ones[8] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
  EXPECT_EQ(load_word(ones, DType::kI16), ~Word{0});
  EXPECT_EQ(load_word(ones, DType::kU16), 0xFFFFU);
  EXPECT_EQ(load_word(ones, DType::kF32), 0xFFFFFFFFU);
  EXPECT_EQ(load_word(ones, DType::kBool), 1U);
  EXPECT_EQ(load_word(ones, DType::kI4), ~Word{0});
  EXPECT_EQ(load_word(ones, DType::kU2), 3U);
  EXPECT_EQ(load_word(ones, DType::kF4E2M1), 15U);
}

}  // namespace
}  // namespace pyc
