// A call from every place of the library that the system can refuse is refused: the caller gets a
// status, nothing leaks, nothing aborts, and the next run is right.

#include <gtest/gtest.h>

#include "faults/sweep.h"

namespace pyc::faults {
namespace {

class Faults : public testing::TestWithParam<Scenario> {};

TEST_P(Faults, GiveAStatusAndLeakNothing) {
  if (GetParam().slow) GTEST_SKIP() << "one of the slow tests";
  sweep(GetParam(), false);
}

INSTANTIATE_TEST_SUITE_P(All, Faults, testing::ValuesIn(scenarios().begin(), scenarios().end()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace pyc::faults
