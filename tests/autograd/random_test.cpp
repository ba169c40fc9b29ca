#include <gtest/gtest.h>

#include "support/differentiable.h"

namespace pyc::test {
namespace {

TEST(RandomGradients, AgreeWithDifferencesAndBetweenDevices) {
  const RandomCounts counts = check_random_graphs(1, 60, 10);
  EXPECT_EQ(counts.fault, "");
  EXPECT_EQ(counts.agreed, 60);
}

}  // namespace
}  // namespace pyc::test
