// Ten thousand graphs in ten parts; a log of a whole run is beside this file.

#include <gtest/gtest.h>

#include <cstdio>

#include "support/differentiable.h"

namespace pyc::test {
namespace {

constexpr int kPart = 1000;
constexpr uint64_t kSeeds = 1000000;  // of a part: more than it can use

class RandomGradientParts : public testing::TestWithParam<int> {};

TEST_P(RandomGradientParts, AgreeWithDifferences) {
  const auto part = static_cast<uint64_t>(GetParam());
  const RandomCounts counts = check_random_graphs((part + 1) * kSeeds, kPart, 100);
  EXPECT_EQ(counts.fault, "");
  EXPECT_EQ(counts.agreed, kPart);
  std::printf("part %d: %d graphs agree, %d with the CPU's bits, %d could not be told\n",
              GetParam(), counts.agreed, counts.compared, counts.unfit);
  std::fflush(stdout);
}

INSTANTIATE_TEST_SUITE_P(TenThousand, RandomGradientParts, testing::Range(0, 10));

}  // namespace
}  // namespace pyc::test
