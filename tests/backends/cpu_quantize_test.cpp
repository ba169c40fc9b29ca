// Bytes quantized by a constant scale have the bits of the division, without one.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <random>

#include "backends/cpu/quantize_by.h"
#include "backends/cpu_emit_support.h"
#include "loop/parse.h"

namespace pyc::cpu_test {
namespace {

constexpr int64_t kElements = 4099;

// x next to half a step, at the edges of the type, and any bits.
float drawn(std::mt19937& random, float scale) {
  const auto bits = static_cast<uint32_t>(random());
  switch (random() % 4) {
    case 0:
      return std::bit_cast<float>(bits);
    case 1: {
      const std::vector<Word> edges = edge_values(DType::kF32);
      return std::bit_cast<float>(static_cast<uint32_t>(edges[bits % edges.size()]));
    }
    default: {
      const double half = static_cast<double>(bits % 700) - 350.0 + 0.5;
      const auto x = static_cast<float>(half * scale);
      return std::bit_cast<float>(std::bit_cast<uint32_t>(x) + bits / 700 % 9 - 4);
    }
  }
}

TEST(QuantizeBy, HasTheIntegersOfTheDivision) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    const float scale = std::ldexp(1.0F + static_cast<float>(random() % (1 << 23)) * 0x1p-23F,
                                   static_cast<int>(random() % 40) - 30);
    const auto zero = static_cast<int32_t>(random() % 256);
    const auto q = cpu::quantize_by(scale, -zero, 255 - zero);
    if (!q) continue;
    for (int j = 0; j < 2000; ++j) {
      const float x = drawn(random, scale);
      if (std::isnan(x)) continue;
      const float wanted =
          std::fmin(std::fmax(std::nearbyint(x / scale), static_cast<float>(-zero)),
                    static_cast<float>(255 - zero));
      ASSERT_EQ((*q)(x), static_cast<int32_t>(wanted)) << scale << " " << zero << " " << x;
    }
  }
}

TEST(QuantizeBy, RefusesScalesThatOverflow) {
  EXPECT_FALSE(cpu::quantize_by(0.0F, 0, 255));
  EXPECT_FALSE(cpu::quantize_by(-1.0F, 0, 255));
  EXPECT_FALSE(cpu::quantize_by(NAN, 0, 255));
  EXPECT_FALSE(cpu::quantize_by(INFINITY, 0, 255));
  EXPECT_FALSE(cpu::quantize_by(1e-40F, 0, 255));
  EXPECT_TRUE(cpu::quantize_by(0.1F, 0, 255));
}

// `x` of a store as quantize has it, for a type with these bounds.
std::string quantizing(const char* x, const char* type, int least, int most, int zero) {
  const std::string point = fmt::format("i32({}:{})", zero, type);
  return fmt::format(R"(kernel {{
buffer b0: f32[{0}] read
buffer b1: f32[{0}] read
buffer b2: {2}[{0}] write
parallel v0 < 1
loop v1 < {0} vector {{
  let t0: f32 = round_even({1} / 0.040769313:f32)
  b2[v1] = {2}(i32(min(max(t0, f32({3}:{2}) - f32({5})), f32({4}:{2}) - f32({5}))) + {5})
}}
}}
)",
                     kElements, x, type, least, most, point);
}

// The byte as a float again, as dequantize has it, in place of the byte.
std::string dequantized(std::string kernel, const char* type, const char* less) {
  kernel = replaced(kernel, fmt::format("b2: {}[", type), "b2: f32[");
  kernel = replaced(kernel, "b2[v1] = ", "b2[v1] = 0.5:f32 / (f32(i32(");
  return replaced(kernel, "\n}\n}", fmt::format("){}) * 0.25:f32)\n}}\n}}", less));
}

void check_quantized(const std::string& text) {
  const auto kernel = loop::parse_kernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string() << text;
  SCOPED_TRACE(text);
  Harness h(*kernel);
  std::mt19937 random(5);
  for (float& v : h.data<float>(0)) v = drawn(random, 0.040769313F);
  for (float& v : h.data<float>(1)) v = 0.0F;
  h.check();
}

// Its zeros are positive, which the division by it shows.
TEST(EmitQuantized, AByteIsAFloatAgain) {
  for (const char* x : {"b0[v1]", "(b0[v1] + b1[v1])"}) {
    for (const auto& [type, least, most, zero] :
         {std::tuple("u8", 0, 255, 0), {"u8", 0, 255, 131}, {"i8", -128, 127, -3}}) {
      const std::string bytes = quantizing(x, type, least, most, zero);
      for (const int less : {zero, 5}) {
        check_quantized(dequantized(bytes, type, fmt::format(" - i32({}:{})", less, type).c_str()));
      }
      check_quantized(dequantized(bytes, type, ""));
    }
    // Bounds that do not fit the byte with its zero point.
    check_quantized(
        dequantized(replaced(quantizing(x, "u8", 0, 255, 9), "+ i32(9:u8)", "+ i32(99:u8)"), "u8",
                    " - i32(99:u8)"));
    // A NaN's 0 is no step between these bounds, and -5 no byte.
    const std::string words = quantizing(x, "i32", 5, 95, -5);
    check_quantized(
        dequantized(replaced(words, "b2[v1] = i32(", "b2[v1] = u8("), "i32", " - -5:i32"));
  }
}

// No byte is made on the way.
TEST(EmitQuantized, AByteBetweenFloatsIsLeftOut) {
  const auto kernel = loop::parse_kernel(
      dequantized(quantizing("b0[v1]", "u8", 0, 255, 131), "u8", " - i32(131:u8)"));
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  for (const auto& target :
       {cpu::CodegenTarget::aarch64_neon(), cpu::CodegenTarget::x86_avx512()}) {
    const auto text = cpu::emit_llvm_text(*kernel, target);
    ASSERT_TRUE(text.ok()) << text.status().to_string();
    for (const char* conversion : {"trunc", "zext", "sitofp", "fptosi", "roundeven"}) {
      EXPECT_EQ(text->find(conversion), std::string::npos) << conversion;
    }
  }
}

// A bound that is NaN makes every value NaN, on whatever machine the code is made.
TEST(EmitQuantized, BoundsAreNumbers) {
  for (const char* bound : {"bits(0x7fc00000):f32", "bits(0x7f800000):f32", "-1e30:f32"}) {
    const std::string words = quantizing("b0[v1]", "u8", 0, 100, 3);
    const std::string least = "f32(0:u8) - f32(i32(3:u8))";
    check_quantized(replaced(words, least, bound));
  }
}

TEST(EmitQuantized, HasTheBitsOfTheDivision) {
  for (const char* x :
       {"b0[v1]", "(b0[v1] + b1[v1])", "max(b0[v1] + b1[v1], 0:f32)", "max(b0[v1], 0:f32)"}) {
    for (const auto& [type, least, most, zero] :
         {std::tuple("u8", 0, 255, 0), {"u8", 0, 255, 131}, {"i8", -128, 127, -3}}) {
      const std::string bytes = quantizing(x, type, least, most, zero);
      check_quantized(bytes);
      const auto kernel = loop::parse_kernel(bytes);
      ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
      for (const auto& target :
           {cpu::CodegenTarget::aarch64_neon(), cpu::CodegenTarget::x86_avx512()}) {
        const auto text = cpu::emit_llvm_text(*kernel, target);
        ASSERT_TRUE(text.ok()) << text.status().to_string();
        EXPECT_EQ(text->find("fdiv"), std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace pyc::cpu_test
