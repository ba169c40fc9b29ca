// Budgets that are met by running steps again.

#include "plan/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plan/lowered_builder.h"
#include "plan/plan.h"
#include "plan/plan_suite.h"
#include "support/budgets.h"

namespace pyc::plan {
namespace {

constexpr int64_t kUnit = 1024;

// x → a, b of a, and a, b are read again at the end, after c → d → e, which are twice as large.
struct TwoKept {
  LoweredBuilder builder;
  lower::LoweredGraph lowered = make();

  lower::LoweredGraph make() {
    const ir::ValueId x = builder.input("x", kUnit);
    const ir::ValueId a = builder.group({x}, {{"a", kUnit}});
    const ir::ValueId b = builder.group({a}, {{"b", kUnit}});
    const ir::ValueId c = builder.group({b}, {{"c", 2 * kUnit}});
    const ir::ValueId d = builder.group({c}, {{"d", 2 * kUnit}});
    const ir::ValueId e = builder.group({d}, {{"e", kUnit / 4}});
    const ir::ValueId f = builder.group({e, b}, {{"f", kUnit / 4}});
    builder.output(builder.group({f, a}, {{"y", kUnit}}));
    return std::move(builder).finish();
  }

  Result<ExecutionPlan> plan(int64_t arena, std::vector<double> ns) const {
    return build_plan(lowered, builder.needs,
                      {.memory_budget = 2 * kUnit + arena, .group_ns = std::move(ns)});
  }
};

std::vector<uint32_t> repeated(const ExecutionPlan& plan) {
  std::vector<uint32_t> groups;
  const std::vector<bool> again = runs_again(plan);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    if (again[s]) groups.push_back(plan.steps[s].group);
  }
  return groups;
}

TEST(Recomputing, HappensOnlyOverTheBudget) {
  const TwoKept kept;
  const auto enough = kept.plan(6 * kUnit, {});
  ASSERT_TRUE(enough.ok()) << enough.status().to_string();
  EXPECT_EQ(enough->host().arena_bytes, 6 * kUnit);
  EXPECT_TRUE(repeated(*enough).empty());
  EXPECT_EQ(std::ranges::find(enough->decisions, "plan:recompute", &Decision::what),
            enough->decisions.end());
}

TEST(Recomputing, TakesTheCheaperStep) {
  const TwoKept kept;
  const auto cheap_a = kept.plan(5 * kUnit, {1, 90, 9, 9, 9, 9, 9});
  ASSERT_TRUE(cheap_a.ok()) << cheap_a.status().to_string();
  EXPECT_EQ(repeated(*cheap_a), std::vector<uint32_t>{0});
  EXPECT_LE(cheap_a->host().arena_bytes, 5 * kUnit);
  const auto cheap_b = kept.plan(5 * kUnit, {90, 1, 9, 9, 9, 9, 9});
  ASSERT_TRUE(cheap_b.ok()) << cheap_b.status().to_string();
  EXPECT_EQ(repeated(*cheap_b), std::vector<uint32_t>{1});
}

TEST(Recomputing, MakesAgainWhatItNeedsItself) {
  const TwoKept kept;
  const auto plan = kept.plan(4 * kUnit, {});
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan->host().arena_bytes, 4 * kUnit);
  EXPECT_EQ(repeated(*plan), (std::vector<uint32_t>{0, 1}));
}

TEST(Recomputing, IsInTheLogWithItsCost) {
  const TwoKept kept;
  const auto plan = kept.plan(5 * kUnit, {1, 90, 9, 9, 9, 9, 9});
  ASSERT_TRUE(plan.ok());
  const auto whole = std::ranges::find(plan->decisions, "plan:recompute", &Decision::what);
  ASSERT_NE(whole, plan->decisions.end());
  EXPECT_EQ(whole->to_string(),
            "plan:recompute -> 1 steps again [over_budget] arena 5120 bytes of 5120 allowed, 6144 "
            "without; 0.7 % more predicted time");
  const auto step = std::ranges::find(plan->decisions, "recompute:g0", &Decision::what);
  ASSERT_NE(step, plan->decisions.end());
  EXPECT_EQ(step->reason, "over_budget");
  ASSERT_EQ(step->alternatives.size(), 2U);
  EXPECT_EQ(step->alternatives[0].cost_ns, 1.0);
}

TEST(Recomputing, RefusesWithTheSmallestBudgetWhichWorks) {
  const TwoKept kept;
  const auto refused = kept.plan(4 * kUnit - 1, {});
  ASSERT_EQ(refused.status().code(), Code::kBudgetExceeded);
  EXPECT_TRUE(refused.status().message().ends_with("the smallest budget for this plan is 6144"))
      << refused.status().message();
}

TEST(Recomputing, IsNotDoneWhereLatencyGoesFirst) {
  const TwoKept kept;
  const auto refused =
      build_plan(kept.lowered, kept.builder.needs,
                 {.memory_budget = 2 * kUnit + 5 * kUnit, .mode = PlanMode::kLatencyFirst});
  EXPECT_TRUE(refused.status().message().ends_with("the smallest budget for this plan is 8192"))
      << refused.status().message();
}

// What may not run again: steps that write outputs. Here only they would help.
TEST(Recomputing, LeavesOutputsAlone) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", kUnit);
  const ir::ValueId both = builder.group({x}, {{"kept", kUnit}, {"out", kUnit}});
  const ir::ValueId big = builder.group({x}, {{"big", 2 * kUnit}});
  const ir::ValueId small = builder.group({big}, {{"small", 2 * kUnit}});
  const ir::ValueId last = builder.group({small, both}, {{"last", kUnit}});
  builder.output(both + 1);
  builder.output(last);
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const lower::LoweredGraph lowered = std::move(builder).finish();
  const auto plan = build_plan(lowered, needs, {.memory_budget = 3 * kUnit + 4 * kUnit});
  // In another order the kept value is made late, and nothing need run again.
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_TRUE(repeated(*plan).empty());
}

// Verifiers look at every plan.
TEST(Recomputing, KeepsOrRefusesBudgetsOfDrawnGraphs) {
  int again = 0;
  each_planned(40, [&](const Planned& made) {
    const auto plan = [&](int64_t budget) {
      return build_plan(made.lowered, made.needs, {.threads = 2, .memory_budget = budget});
    };
    const auto free = plan(-1);
    ASSERT_TRUE(free.ok());
    test::check_budgets(plan, free->host().peak_bytes, [&](const ExecutionPlan& tight) {
      if (!repeated(tight).empty()) ++again;
    });
  });
  EXPECT_GE(again, 2);
}

}  // namespace
}  // namespace pyc::plan
