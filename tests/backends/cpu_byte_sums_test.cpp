// Sums of products of bytes over the taps of a window.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "backends/cpu/point_blocks.h"
#include "backends/cpu_emit_support.h"

namespace pyc::cpu_test {
namespace {

struct Layer {
  int64_t channels = 32;
  int64_t rows = 6;
  int64_t columns = 7;
  int64_t height = 3;  // of the window
  int64_t width = 3;
  const char* x = "u8";
  int zero = 7;
  const char* weight = "i8";
  int weight_zero = 0;
};

// A depthwise layer that keeps its size, channels last.
std::string text_of(const Layer& l) {
  const int64_t points = l.rows * l.columns;
  const int64_t line = l.columns * l.channels;
  const int64_t above = l.height / 2;
  const int64_t left = l.width / 2;
  return fmt::format(
      R"(buffer b0: {x}[{elements}] read
buffer b1: {weight}[{weights}] read
buffer b2: f32[{c}] read
buffer b3: i32[{elements}] write
parallel v0 < {rows}
parallel v1 < {columns}
loop v2 < {c} vector {{
  loop v3 < {taps} {{
    let t1: bool = (0 <= v0 + v3 // {kw} - {above}) & (v0 + v3 // {kw} - {above} < {rows})
    let t2: bool = t1 & ((0 <= v1 + v3 % {kw} - {left}) & (v1 + v3 % {kw} - {left} < {columns}))
    let t3: {x} = b0[v0*{line} + v1*{c} + v2 + v3 % {kw}*{c} + v3 // {kw}*{line} - {first}] if t2 else {zero}:{x}
    reduce v4: i32 = chain sum(i32(t3) - i32({zero}:{x}), i32(b1[v2 + v3*{c}]) - i32({wz}:{weight})) segment 256 if t2
  }}
  b3[v0*{line} + v1*{c} + v2] = v4 + i32(b2[v2])
}})",
      fmt::arg("x", l.x), fmt::arg("weight", l.weight), fmt::arg("c", l.channels),
      fmt::arg("elements", points * l.channels),
      fmt::arg("weights", l.height * l.width * l.channels), fmt::arg("rows", l.rows),
      fmt::arg("columns", l.columns), fmt::arg("taps", l.height * l.width), fmt::arg("kw", l.width),
      fmt::arg("above", above), fmt::arg("left", left), fmt::arg("line", line),
      fmt::arg("first", above * line + left * l.channels), fmt::arg("zero", l.zero),
      fmt::arg("wz", l.weight_zero));
}

void check(const Layer& layer) {
  const std::string text = text_of(layer);
  SCOPED_TRACE(text);
  const Kernel kernel = parsed(text);
  for (const uint64_t seed : {1, 2}) Harness(kernel, seed).check();
  for (const int points : {2, 3}) {
    const auto blocks = cpu::block_points(kernel, points);
    if (!blocks) continue;
    Harness harness(*blocks, 3);
    EXPECT_EQ(harness.interpreted(), Harness(kernel, 3).interpreted());
    harness.check();
  }
}

TEST(ByteSums, BitsStay) {
  check({});
  check({.x = "i8", .zero = -5});
  check({.zero = 0});
  check({.x = "i8", .zero = 0});
  check({.zero = 255});
  for (const int64_t channels : {1, 15, 16, 17, 48, 100, 130}) check({.channels = channels});
  for (const int64_t columns : {1, 2, 6, 9}) check({.columns = columns});
  for (const int64_t width : {1, 2, 4, 5}) check({.height = 2, .width = width});
  check({.channels = 16, .height = 5, .width = 5});
  check({.weight_zero = 3});
  check({.weight = "u8"});
}

// Weights that would take too much of the stack stay as they are.
TEST(ByteSums, ManyChannels) {
  check({.channels = 2048, .rows = 3, .columns = 3});
  check({.channels = 2064, .rows = 3, .columns = 3});
}

// Zones of channels that begin within a block of weights.
TEST(ByteSums, ZonesOfChannels) {
  for (const int border : {1, 5, 16, 20}) {
    for (const int64_t channels : {32, 58, 116}) {
      const std::string whole = text_of({.channels = channels});
      const std::string text =
          replaced(whole, "i32(b2[v2])",
                   fmt::format("i32(b2[v2] if v2 < {0} else 0:f32) - i32(b2[{1} - v2] if {0} <= v2 "
                               "else 0:f32)",
                               border, channels));
      ASSERT_NE(text, whole);
      SCOPED_TRACE(text);
      Harness(parsed(text)).check();
    }
  }
}

// Two taps that read the same element have two weights.
TEST(ByteSums, TapsOfOneElement) {
  const std::string text = replaced(text_of({}), "v3 % 3", "v3 % 3 // 2");
  ASSERT_NE(text, text_of({}));
  Harness(parsed(text)).check();
}

TEST(ByteSums, UnitsMultiplyFourTaps) {
  const auto takes = [](const Layer& layer, const cpu::CodegenTarget& target, const char* name) {
    auto text = cpu::emit_llvm_text(parsed(text_of(layer)), target);
    EXPECT_TRUE(text.ok()) << text.status().to_string();
    return text.ok() && text->find(name) != std::string::npos;
  };
  EXPECT_TRUE(takes({}, cpu::CodegenTarget::x86_vnni(), "vpdpbusd"));
  EXPECT_FALSE(takes({}, cpu::CodegenTarget::x86_avx512(), "vpdpbusd"));
  EXPECT_TRUE(takes({}, cpu::CodegenTarget::aarch64_i8mm(), "neon.sdot"));
  EXPECT_FALSE(takes({}, cpu::CodegenTarget::aarch64_neon(), "neon.sdot"));
  EXPECT_FALSE(takes({.channels = 15}, cpu::CodegenTarget::x86_vnni(), "add <16 x i32>"));
  EXPECT_FALSE(takes({.weight_zero = 3}, cpu::CodegenTarget::x86_vnni(), "vpdpbusd"));
  EXPECT_FALSE(takes({.weight = "u8"}, cpu::CodegenTarget::x86_vnni(), "vpdpbusd"));
  EXPECT_FALSE(takes({.channels = 2064}, cpu::CodegenTarget::x86_vnni(), "vpdpbusd"));
}

}  // namespace
}  // namespace pyc::cpu_test
