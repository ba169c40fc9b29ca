// Budgets of a device that are met by values that wait on the host.

#include "plan/offload.h"

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

// `kept` is read again behind the largest step, and its step writes an output:
// it cannot run again.
struct OneKept {
  LoweredBuilder builder;
  lower::LoweredGraph lowered = make();

  lower::LoweredGraph make() {
    const ir::ValueId x = builder.input("x", kUnit);
    const ir::ValueId kept = builder.group({x}, {{"kept", kUnit}, {"out", kUnit}});
    const ir::ValueId big = builder.group({kept}, {{"big", 2 * kUnit}});
    const ir::ValueId also = builder.group({big}, {{"also", 2 * kUnit}});
    const ir::ValueId last = builder.group({also, kept}, {{"last", kUnit}});
    builder.output(kept + 1);
    builder.output(last);
    return std::move(builder).finish();
  }

  Result<ExecutionPlan> plan(int64_t arena, bool offload) const {
    return build_plan(lowered, builder.needs,
                      {.memory_budget = 3 * kUnit + arena, .offload = offload});
  }
};

TEST(MovingOut, MovesOutWhatCannotBeMadeAgain) {
  const OneKept model;
  EXPECT_EQ(model.plan(4 * kUnit, false).status().code(), Code::kBudgetExceeded);
  const auto plan = model.plan(4 * kUnit, true);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan->host().arena_bytes, 4 * kUnit);
  ASSERT_EQ(plan->places.size(), 2U);
  EXPECT_EQ(plan->places[kShelf].metrics.arena_bytes, kUnit);
  EXPECT_EQ(plan->places[kShelf].metrics.copied_bytes, kUnit);
  EXPECT_EQ(plan->host().copied_bytes, kUnit);
  std::string steps;
  for (const Step& step : plan->steps) {
    steps += step.kind == StepKind::kCopy ? plan->instances[step.writes[0]].name + " " : "run ";
  }
  EXPECT_EQ(steps, "run run kept.out run kept.back run ");
  const auto whole = std::ranges::find(plan->decisions, "plan:offload", &Decision::what);
  ASSERT_NE(whole, plan->decisions.end());
  EXPECT_EQ(whole->to_string(),
            "plan:offload -> 1 values moved out [over_budget] arena 4096 bytes "
            "of 4096 allowed, "
            "1024 on the host; 1024 bytes out and 1024 back");
  const auto one = std::ranges::find(plan->decisions, "offload:kept.out", &Decision::what);
  ASSERT_NE(one, plan->decisions.end());
  EXPECT_EQ(one->reason, "no_room_on_device");
}

TEST(MovingOut, IsLeftOutWithinTheBudgetAndWhereLatencyGoesFirst) {
  const OneKept model;
  const auto enough = model.plan(5 * kUnit, true);
  ASSERT_TRUE(enough.ok()) << enough.status().to_string();
  EXPECT_EQ(enough->places.size(), 1U);
  const auto refused = build_plan(
      model.lowered, model.builder.needs,
      {.memory_budget = 3 * kUnit + 4 * kUnit, .mode = PlanMode::kLatencyFirst, .offload = true});
  EXPECT_EQ(refused.status().code(), Code::kBudgetExceeded);
}

// Verifiers look at every plan, and the smallest budget is never above the one without the host.
TEST(MovingOut, KeepsOrRefusesBudgetsOfDrawnGraphs) {
  int moved = 0;
  each_planned(40, [&](const Planned& made) {
    const auto plan = [&](bool offload) {
      return [&made, offload](int64_t budget) {
        return build_plan(made.lowered, made.needs,
                          {.threads = 2, .memory_budget = budget, .offload = offload});
      };
    };
    const int64_t without = test::smallest_budget(plan(false)(1).status());
    test::check_budgets(plan(true), without, [&](const ExecutionPlan& tight) {
      EXPECT_LE(tight.host().peak_bytes, without);
      if (tight.places.size() > 1) ++moved;
    });
  });
  EXPECT_GE(moved, 1);
}

}  // namespace
}  // namespace pyc::plan
