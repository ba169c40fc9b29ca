#include <gtest/gtest.h>

#include "base/sanitizers.h"
#include "support/differentiable.h"

namespace pyc::test {
namespace {

TEST(RandomGradients, AgreeWithDifferencesAndBetweenDevices) {
  constexpr int kGraphs = kSanitized ? 15 : 60;
  const RandomCounts counts = check_random_graphs(1, kGraphs, 10);
  EXPECT_EQ(counts.fault, "");
  EXPECT_EQ(counts.agreed, kGraphs);
}

}  // namespace
}  // namespace pyc::test
