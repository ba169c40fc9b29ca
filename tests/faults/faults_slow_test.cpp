// Every single call refused, where faults_test.cpp takes one from each place in the code.

#include <gtest/gtest.h>

#include "faults/sweep.h"

namespace pyc::faults {
namespace {

class EveryFault : public testing::TestWithParam<Scenario> {};

TEST_P(EveryFault, GivesAStatusAndLeaksNothing) { sweep(GetParam(), true); }

INSTANTIATE_TEST_SUITE_P(All, EveryFault, testing::ValuesIn(scenarios().begin(), scenarios().end()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace pyc::faults
