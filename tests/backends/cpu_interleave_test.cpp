// Kernels whose rows are written side by side, and how vectors of them are stored.

#include <gtest/gtest.h>

#include "backends/cpu/interleave.h"
#include "backends/cpu_emit_support.h"
#include "loop/verify.h"

namespace pyc::cpu_test {
namespace {

// The two halves of 58 channels, one of each in turn.
constexpr const char* kShuffle = R"(buffer b0: f32[348] read
buffer b1: f32[348] read
buffer b2: u8[696] write
parallel v0 < 6
loop v1 < 116 vector {
  let t0: f32 = b1[v0*58 + v1 // 2 + v1 % 2*58 - 58] if 58 <= v1 // 2 + v1 % 2*58 else 0:f32
  let t1: f32 = b0[v0*58 + v1 // 2 + v1 % 2*58] if v1 // 2 + v1 % 2*58 < 58 else t0
  b2[v0*116 + v1] = u8(min(max(t1 * 3:f32, 0:f32), 255:f32))
})";

// Three planes as pixels.
constexpr const char* kPixels = R"(buffer b0: f32[1152] read
buffer b1: f32[1152] write
parallel v0 < 384
loop v1 < 3 vector {
  b1[v0*3 + v1] = b0[v0 + v1*384] + 1:f32
})";

TEST(Interleave, DigitsOfTheLoopBecomeRows) {
  const auto rows = cpu::interleave(parsed(kShuffle));
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(loop::print(*rows), R"(kernel {
buffer b0: f32[348] read
buffer b1: f32[348] read
buffer b2: u8[696] write
parallel v0 < 6
loop v1 < 58 vector {
  let t0: f32 = (b0[v0*58 + v1] if true else (b1[v0*58 + v1 - 58] if false else 0:f32)) * 3:f32
  b2[v0*116 + v1*2] = u8(min(max(t0, 0:f32), 255:f32))
  let t1: f32 = (b0[v0*58 + v1 + 58] if false else (b1[v0*58 + v1] if true else 0:f32)) * 3:f32
  b2[v0*116 + v1*2 + 1] = u8(min(max(t1, 0:f32), 255:f32))
}
}
)");
}

TEST(Interleave, ShortRowsOfPlanesBecomeLongOnes) {
  const auto rows = cpu::interleave(parsed(kPixels));
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(loop::print(*rows), R"(kernel {
buffer b0: f32[1152] read
buffer b1: f32[1152] write
parallel v0 < 2
loop v1 < 192 vector {
  b1[v0*576 + v1*3] = b0[v0*192 + v1] + 1:f32
  b1[v0*576 + v1*3 + 1] = b0[v0*192 + v1 + 384] + 1:f32
  b1[v0*576 + v1*3 + 2] = b0[v0*192 + v1 + 768] + 1:f32
}
}
)");
}

// Against the kernel as it was, in vectors of every width.
TEST(Interleave, BitsStay) {
  const auto check = [](const std::string& text) {
    SCOPED_TRACE(text);
    const Kernel kernel = parsed(text);
    const auto rows = cpu::interleave(kernel);
    ASSERT_TRUE(rows.has_value());
    EXPECT_TRUE(loop::verify_kernel(*rows).ok()) << loop::verify_kernel(*rows).to_string();
    for (const uint64_t seed : {1, 2}) {
      Harness harness(*rows, seed);
      EXPECT_EQ(harness.interpreted(), Harness(kernel, seed).interpreted());
      harness.check();
    }
  };
  check(kShuffle);
  check(replaced(replaced(kShuffle, "u8(", "i8("), "b2: u8", "b2: i8"));
  for (const char* points : {"64", "100", "250", "384"}) {
    const std::string all = std::to_string(3 * std::stoi(points));
    check(replaced(replaced(kPixels, "1152", all), "384", points));
  }
  const std::string four = replaced(replaced(kPixels, "v1 < 3", "v1 < 4"), "v0*3", "v0*4");
  check(replaced(four, "1152", "1536"));
  const std::string two = replaced(replaced(kPixels, "v1 < 3", "v1 < 2"), "v0*3", "v0*2");
  check(replaced(two, "1152", "768"));
}

// One vector is stored for both rows.
TEST(Interleave, RowsAreStoredTogether) {
  const auto rows = cpu::interleave(parsed(kShuffle));
  ASSERT_TRUE(rows.has_value());
  auto text = cpu::emit_llvm_text(*rows, cpu::CodegenTarget::x86_avx512());
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  EXPECT_NE(text->find("store <32 x i8>"), std::string::npos);
  EXPECT_EQ(text->find("extractelement"), std::string::npos);
}

// What is taken apart lies together then, and what lay together no longer does.
TEST(Interleave, WhatLiesTogetherIsNotTakenApartForLess) {
  constexpr const char* kGroups = R"(buffer b0: f32[768] read
buffer b1: f32[64] read
buffer b2: f32[64] read
buffer b3: f32[768] write
parallel v0 < 6
loop v1 < 128 vector {
  b3[v0*128 + v1] = (b0[v0*128 + v1] - b1[v1 // 2]) * b2[v1 // 2]
})";
  const auto taken = [](const std::string& text) {
    return cpu::interleave(parsed(text)).has_value();
  };
  EXPECT_TRUE(taken(kGroups));
  EXPECT_FALSE(taken(replaced(kGroups, "// 2", "// 4")));  // rows of strides of 4
  const std::string rows = replaced(kGroups, "* b2[v1 // 2]", "* b0[v0*128 + v1 + 1]");
  // Two of them for one.
  EXPECT_FALSE(taken(replaced(rows, "f32[768] read", "f32[769] read")));
}

// The second value is made of what the first store wrote.
TEST(Interleave, WhatIsReadAgainIsStoredFirst) {
  Harness(parsed(R"(buffer b0: f32[64] read
buffer b1: f32[128] scratch
buffer b2: f32[128] write
loop v0 < 64 vector {
  b1[v0*2] = b0[v0]
  b1[v0*2 + 1] = b1[v0*2] + 1:f32
}
loop v1 < 128 vector {
  b2[v1] = b1[v1]
})"),
          1)
      .check();
}

TEST(Interleave, OtherFormsAreLeft) {
  const auto taken = [](const std::string& text, const std::string& from, const std::string& to) {
    const std::string other = replaced(text, from, to);
    EXPECT_NE(text, other) << from;
    return cpu::interleave(parsed(other)).has_value();
  };
  EXPECT_FALSE(taken(kShuffle, "v1 < 116 vector", "v1 < 115 vector"));  // a row would be longer
  EXPECT_FALSE(taken(kShuffle, "v1 < 116 vector", "v1 < 116"));         // one after another
  EXPECT_FALSE(taken(kPixels, "v0 + v1*384", "v0*3 + v1"));             // they lie together
  EXPECT_FALSE(taken(kPixels, "b1[v0*3 + v1]", "b1[v0 + v1*384]"));     // and are written so
  EXPECT_FALSE(taken(kPixels, "384", "383"));                           // too few together
}

}  // namespace
}  // namespace pyc::cpu_test
