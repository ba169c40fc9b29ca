// Budgets of a device that are met by values that wait on the host.

#include "plan/offload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plan/lowered_builder.h"
#include "plan/plan.h"
#include "plan/plan_suite.h"

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

int64_t smallest_of(const Status& status) {
  const std::string words = "the smallest budget for this plan is ";
  const size_t at = status.message().rfind(words);
  EXPECT_NE(at, std::string::npos) << status.to_string();
  return at == std::string::npos ? 0 : std::stoll(status.message().substr(at + words.size()));
}

// Every budget is kept or refused, verifiers look at every plan, and the
// smallest is never above the one without the host.
TEST(MovingOut, KeepsOrRefusesBudgetsOfDrawnGraphs) {
  int moved = 0;
  for (size_t index = 0; index < 40; ++index) {
    const SuiteGraph suite = suite_graph(index);
    SCOPED_TRACE(suite.name);
    const auto made = lowered_for_plan(suite.graph, index % 2 == 0);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    const auto plan = [&](int64_t budget, bool offload) {
      return build_plan(made->lowered, made->needs,
                        {.threads = 2, .memory_budget = budget, .offload = offload});
    };
    const int64_t without = smallest_of(plan(1, false).status());
    const int64_t smallest = smallest_of(plan(1, true).status());
    EXPECT_LE(smallest, without);
    const auto tight = plan(smallest, true);
    ASSERT_TRUE(tight.ok()) << tight.status().to_string();
    EXPECT_LE(tight->host().peak_bytes, smallest);
    EXPECT_EQ(print(*tight), print(*plan(smallest, true)));
    EXPECT_EQ(plan(smallest - 1, true).status().code(), Code::kBudgetExceeded);
    if (tight->places.size() > 1) ++moved;
    const int64_t between = smallest + (without - smallest) / 2;
    const auto met = plan(between, true);
    ASSERT_TRUE(met.ok()) << met.status().to_string();
    EXPECT_LE(met->host().peak_bytes, between);
  }
  EXPECT_GE(moved, 1);
}

}  // namespace
}  // namespace pyc::plan
