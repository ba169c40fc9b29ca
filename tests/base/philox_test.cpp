#include "base/philox.h"

#include <gtest/gtest.h>

namespace pyc {
namespace {

using Block = std::array<uint32_t, 4>;

// The known answers published with Random123 (kat_vectors).
TEST(Philox, KnownAnswers) {
  constexpr uint32_t kOnes = 0xFFFFFFFF;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, WordsComeFromTheStatedBlock) {
  constexpr uint64_t kSeed = 0x299f31d0a4093822;
  constexpr uint64_t kStream = 0x0370734413198a2e;
  constexpr uint64_t kBlock = 0x05a308d3243f6a88;  // index div 4 has 62 bits
  const Block block =
      philox4x32({0x243f6a88, 0x05a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0});
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(philox_word(kSeed, kStream, kBlock * 4 + i), block[i]);
}

TEST(Philox, UniformIsTheWordScaledExactly) {
  static_assert(philox_uniform01(0, 0, 0) == 0x6627e8d5p-32);
  EXPECT_EQ(philox_uniform01(0, 0, 3), 0x9b00dbd8p-32);
  double sum = 0;
  constexpr int kCount = 100'000;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double u = philox_uniform01(42, 7, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
}

TEST(Philox, SeedsAndStreamsDiffer) {
  EXPECT_NE(philox_word(1, 0, 0), philox_word(2, 0, 0));
  EXPECT_NE(philox_word(1, 0, 0), philox_word(1, 1, 0));
  EXPECT_NE(philox_word(uint64_t{1} << 32, 0, 0), philox_word(0, 0, 0));
  EXPECT_NE(philox_word(0, uint64_t{1} << 32, 0), philox_word(0, 0, 0));
}

}  // namespace
}  // namespace pyc
