#include "ir/literal.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/lexer.h"
#include "ir/random_graph.h"

namespace pyc::ir {
namespace {

TEST(Literal, EveryNarrowElementIsReadBackExactly) {
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto dtype = static_cast<DType>(t);
    if (dtype_size(dtype) > 2) continue;
    const Word count = dtype == DType::kBool ? 2 : Word{1} << dtype_bits(dtype);
    for (Word bits = 0; bits < count; ++bits) {
      const Word word = load_word(&bits, dtype);
      const std::string text = format_element(word, dtype);
      const auto back = parse_element(text, dtype);
      ASSERT_TRUE(back.has_value()) << text << " as " << dtype_name(dtype);
      ASSERT_EQ(*back, word) << text << " as " << dtype_name(dtype);
    }
  }
}

TEST(Literal, WideElementsAreReadBackExactly) {
  testing::Random random(1);
  const Word special[] = {0,
                          1,
                          0x7fffffff,
                          0x80000000,
                          0xffffffff,
                          0x7f800000,
                          0xff800000,
                          0x7fc00000,
                          0x7fc00001,
                          0xffc00000,
                          0x00800000,
                          0x007fffff,
                          ~Word{0},
                          Word{1} << 63,
                          0x7ff0000000000000,
                          0xfff0000000000000,
                          0x7ff8000000000000,
                          0x7ff8000000000001,
                          0x000fffffffffffff};
  for (const DType dtype :
       {DType::kI32, DType::kI64, DType::kU32, DType::kU64, DType::kF32, DType::kF64}) {
    for (size_t i = 0; i < 20000; ++i) {
      const Word bits = i < std::size(special) ? special[i] : random.bits();
      const Word word = load_word(&bits, dtype);
      const std::string text = format_element(word, dtype);
      ASSERT_EQ(parse_element(text, dtype), word) << text << " as " << dtype_name(dtype);
    }
  }
}

TEST(Literal, FloatsAreWrittenShort) {
  const auto text = [](double x, DType dtype) {
    return format_element(word_from_double(x, dtype), dtype);
  };
  EXPECT_EQ(text(0.1, DType::kF64), "0.1");
  EXPECT_EQ(text(0.1, DType::kF32), "0.1");
  EXPECT_EQ(text(0.1, DType::kF16), "0.1");
  EXPECT_EQ(text(0.1, DType::kBF16), "0.1");
  EXPECT_EQ(text(2.0, DType::kF8E5M2), "2.0");
  EXPECT_EQ(text(0.125, DType::kF8E8M0), "0.125");
  EXPECT_EQ(text(-1.5, DType::kF4E2M1), "-1.5");
  EXPECT_EQ(text(448.0, DType::kF8E4M3FN), "448.0");
  EXPECT_EQ(text(65504.0, DType::kF16), "65504.0");
  EXPECT_EQ(text(1e20, DType::kF32), "1e+20");
  EXPECT_EQ(text(-0.0, DType::kF16), "-0.0");
  EXPECT_EQ(text(NAN, DType::kBF16), "nan");
  EXPECT_EQ(text(-INFINITY, DType::kF64), "-inf");
  EXPECT_EQ(format_element(0x7fc00001, DType::kF32), "0x7fc00001");
  EXPECT_EQ(format_element(0xff, DType::kF8E4M3FN), "0xff");
  EXPECT_EQ(format_element(0x7c01, DType::kF16), "0x7c01");
  EXPECT_EQ(format_element(0x7ff0000000000001, DType::kF64), "0x7ff0000000000001");
}

TEST(Literal, DecimalsRoundOnceToF32) {
  // Just above the middle of 1 and the next f32: by way of f64 it would become the middle, then 1.
  EXPECT_EQ(parse_element("1.00000005960464477539062500001", DType::kF32), 0x3f800001u);
  EXPECT_EQ(parse_element("1", DType::kF32), 0x3f800000u);
  EXPECT_EQ(parse_element("0x3f800000", DType::kF32), 0x3f800000u);
}

TEST(Literal, RefusesWhatDoesNotFit) {
  const auto refused = [](std::string_view text, DType dtype) {
    return !parse_element(text, dtype).has_value();
  };
  for (const char* text : {"", "-", "1.0", "1e3", "0x10", "+1", "1 ", "true", "128", "-129"}) {
    EXPECT_TRUE(refused(text, DType::kI8)) << text;
  }
  EXPECT_TRUE(refused("-1", DType::kU64));
  EXPECT_TRUE(refused("256", DType::kU8));
  EXPECT_TRUE(refused("18446744073709551616", DType::kU64));
  EXPECT_TRUE(refused("9223372036854775808", DType::kI64));
  for (const char* text : {"", "-", ".5", "+1", "1.0.0", "1e", "infinity", "-nan", "nan(1)", "NaN",
                           "0x", "0x1p3", "0x100000000", "1e39", "1e999", "true", "1f"}) {
    EXPECT_TRUE(refused(text, DType::kF32)) << text;
  }
  EXPECT_TRUE(refused("65520", DType::kF16));
  EXPECT_TRUE(refused("500", DType::kF8E4M3FN));
  EXPECT_TRUE(refused("inf", DType::kF8E4M3FN));
  EXPECT_TRUE(refused("0x100", DType::kF8E5M2));
  for (const char* text : {"8", "-9"}) EXPECT_TRUE(refused(text, DType::kI4)) << text;
  for (const char* text : {"4", "-1"}) EXPECT_TRUE(refused(text, DType::kU2)) << text;
  for (const char* text : {"7", "-7", "nan", "inf", "-inf", "0x10"}) {
    EXPECT_TRUE(refused(text, DType::kF4E2M1)) << text;
  }
  for (const char* text : {"inf", "248"}) EXPECT_TRUE(refused(text, DType::kF8E4M3FNUZ)) << text;
  for (const char* text : {"0", "-0.0", "-1", "inf", "1e-39", "1.8e38"}) {
    EXPECT_TRUE(refused(text, DType::kF8E8M0)) << text;
  }
  EXPECT_TRUE(refused("1", DType::kBool));
}

TEST(Literal, Names) {
  EXPECT_EQ(format_name("a.b_1"), "a.b_1");
  EXPECT_EQ(format_name("a/b:0"), "\"a/b:0\"");
  EXPECT_EQ(format_name(""), "\"\"");
  EXPECT_EQ(format_name("1a"), "\"1a\"");
  EXPECT_EQ(format_name(std::string("\0\x7f\"\\", 4)), "\"\\x00\\x7f\\\"\\\\\"");
  EXPECT_EQ(format_name("größe"), "\"größe\"");
  EXPECT_EQ(cut_text("größe", 3), "gr…");
  EXPECT_EQ(cut_text("größe", 4), "grö…");
  EXPECT_EQ(cut_text("größe", 7), "größe");
}

}  // namespace
}  // namespace pyc::ir
