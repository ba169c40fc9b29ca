#pragma once

// What tests of memory budgets share: that every budget is kept or refused, with the smallest one
// named.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/status.h"
#include "plan/plan.h"

namespace pyc::test {

// The budget that a refusal names.
inline int64_t smallest_budget(const Status& refusal) {
  const std::string words = "the smallest budget for this plan is ";
  const size_t at = refusal.message().rfind(words);
  EXPECT_NE(at, std::string::npos) << refusal.to_string();
  return at == std::string::npos ? 0 : std::stoll(refusal.message().substr(at + words.size()));
}

using PlanWithin = std::function<Result<plan::ExecutionPlan>(int64_t budget)>;

// The plan within the smallest budget: it is the same when it is made again, one byte less is
// refused, and budgets at each quarter up to `enough` are kept.
inline void check_budgets(const PlanWithin& plan, int64_t enough,
                          const std::function<void(const plan::ExecutionPlan&)>& look) {
  const auto refused = plan(1);
  ASSERT_EQ(refused.status().code(), Code::kBudgetExceeded);
  const int64_t smallest = smallest_budget(refused.status());
  const auto tight = plan(smallest);
  ASSERT_TRUE(tight.ok()) << tight.status().to_string();
  EXPECT_LE(tight->host().peak_bytes, smallest);
  EXPECT_EQ(plan::print(*tight), plan::print(*plan(smallest)));
  EXPECT_EQ(plan(smallest - 1).status().code(), Code::kBudgetExceeded);
  for (const int64_t quarter : {1, 2, 3}) {
    const int64_t budget = smallest + (enough - smallest) * quarter / 4;
    const auto between = plan(budget);
    ASSERT_TRUE(between.ok()) << between.status().to_string();
    EXPECT_LE(between->host().peak_bytes, budget);
  }
  look(*tight);
}

}  // namespace pyc::test
