// Budgets that are met by parameters that stay in a file.

#include "plan/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plan/liveness.h"
#include "plan/lowered_builder.h"
#include "plan/plan.h"
#include "plan/plan_suite.h"
#include "support/budgets.h"

namespace pyc::plan {
namespace {

constexpr int64_t kWeight = 1024;
constexpr int64_t kValue = 64;
constexpr int64_t kIo = 2 * kValue;

// x → a → b → y, each by a weight of its own; the second is packed.
struct ThreeLayers {
  LoweredBuilder builder;
  lower::LoweredGraph lowered = make();

  lower::LoweredGraph make() {
    ir::ValueId value = builder.input("x", kValue);
    for (const std::string layer : {"a", "b", "y"}) {
      const ir::ValueId w = builder.constant("w_" + layer, kWeight);
      value = builder.group({value, w}, {{layer, kValue}});
      if (layer == "b") builder.needs.back().packed = {{w, kWeight, "panels"}};
    }
    builder.output(value);
    return std::move(builder).finish();
  }

  Result<ExecutionPlan> plan(int64_t budget, PlanMode mode = PlanMode::kBalanced) const {
    return build_plan(lowered, builder.needs,
                      {.memory_budget = budget, .mode = mode, .stream = true});
  }
};

int64_t bytes_of(const ExecutionPlan& plan, BufferClass cls) {
  return plan.host().class_bytes[static_cast<size_t>(cls)];
}

// All three are copied, one after the other, beside the two values of the step in the middle.
constexpr int64_t kSmallest = kIo + kWeight + 2 * kValue;

TEST(Streaming, HappensOnlyOverTheBudget) {
  const ThreeLayers layers;
  const int64_t peak = kIo + 3 * kWeight + 2 * kValue;
  const auto enough = layers.plan(peak);
  ASSERT_TRUE(enough.ok()) << enough.status().to_string();
  EXPECT_EQ(enough->host().peak_bytes, peak);
  EXPECT_EQ(bytes_of(*enough, BufferClass::kMapped), 0);
  EXPECT_EQ(enough->steps.size(), 3U);
}

TEST(Streaming, CopiesAsLittleAsTheBudgetAllows) {
  const ThreeLayers layers;
  const auto plan = layers.plan(kSmallest + kWeight);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_LE(plan->host().peak_bytes, kSmallest + kWeight);
  EXPECT_EQ(bytes_of(*plan, BufferClass::kParameter), kWeight);
  EXPECT_EQ(bytes_of(*plan, BufferClass::kMapped), 2 * kWeight);
  EXPECT_EQ(plan->host().copied_bytes, 2 * kWeight);
}

TEST(Streaming, MeetsTheSmallestBudgetAndNoByteLess) {
  const ThreeLayers layers;
  const auto plan = layers.plan(kSmallest);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan->host().peak_bytes, kSmallest);
  EXPECT_EQ(bytes_of(*plan, BufferClass::kParameter), 0);
  EXPECT_EQ(bytes_of(*plan, BufferClass::kMapped), 3 * kWeight);
  EXPECT_EQ(plan->host().arena_bytes, kWeight + 2 * kValue);
  const auto refused = layers.plan(kSmallest - 1);
  ASSERT_EQ(refused.status().code(), Code::kBudgetExceeded);
  EXPECT_TRUE(refused.status().message().ends_with("the smallest budget for this plan is " +
                                                   std::to_string(kSmallest)))
      << refused.status().message();
  EXPECT_NE(refused.status().message().find("parameter 0 (3072 more stay in a file)"),
            std::string::npos)
      << refused.status().message();
}

TEST(Streaming, IsNotDoneWhereLatencyGoesFirst) {
  const ThreeLayers layers;
  EXPECT_EQ(layers.plan(kSmallest, PlanMode::kLatencyFirst).status().code(), Code::kBudgetExceeded);
}

TEST(Streaming, IsInTheLogWithItsCost) {
  const ThreeLayers layers;
  const auto plan = layers.plan(kSmallest);
  ASSERT_TRUE(plan.ok());
  const auto whole = std::ranges::find(plan->decisions, "plan:stream", &Decision::what);
  ASSERT_NE(whole, plan->decisions.end());
  EXPECT_EQ(whole->to_string(),
            "plan:stream -> 3 parameters in a file [over_budget] arena 1152 and parameters 0 bytes "
            "of 1152 allowed; 3072 bytes copied in a run");
  const auto one = std::ranges::find(plan->decisions, "stream:w_b.packed[g1]", &Decision::what);
  ASSERT_NE(one, plan->decisions.end());
  ASSERT_EQ(one->alternatives.size(), 2U);
  EXPECT_EQ(one->alternatives[0].cost_ns, kWeight * kStreamNsPerByte);
}

TEST(Streaming, IsShownInTheListing) {
  const ThreeLayers layers;
  const auto plan = layers.plan(kSmallest);
  ASSERT_TRUE(plan.ok());
  const std::string text = print(*plan);
  EXPECT_NE(text.find("mapped[2] w_b.packed[g1]: 1024 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("  mapped 3072\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  copied 3072 a run\n"), std::string::npos) << text;
}

// What the verifiers say of plans that are wrong in one thing.
class StreamedPlan : public ::testing::Test {
 protected:
  StreamedPlan() : plan_(layers_.plan(kSmallest).value()) {}

  std::string schedule() {
    set_uses(plan_);
    return verify_schedule(layers_.lowered, plan_).message();
  }
  std::string allocation() {
    set_uses(plan_);
    return verify_allocation(plan_).message();
  }

  ThreeLayers layers_;
  ExecutionPlan plan_;
};

TEST_F(StreamedPlan, CopiesBeforeEachStep) {
  ASSERT_EQ(plan_.steps.size(), 6U);
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    EXPECT_EQ(plan_.steps[s].kind, s % 2 == 0 ? StepKind::kCopy : StepKind::kRun);
  }
  EXPECT_EQ(schedule(), "");
  EXPECT_EQ(allocation(), "");
}

TEST_F(StreamedPlan, ScheduleRefusesAMissingCopy) {
  for (const size_t copy : {0, 2, 4}) {
    const ExecutionPlan whole = plan_;
    const std::string name = plan_.instances[plan_.steps[copy].writes[0]].name;
    plan_.steps.erase(plan_.steps.begin() + static_cast<int64_t>(copy));
    const std::string said = schedule();
    EXPECT_TRUE(said.starts_with("[wrong_contents] step " + std::to_string(copy))) << said;
    EXPECT_NE(said.find("'" + name + "', which holds "), std::string::npos) << said;
    plan_ = whole;
  }
}

TEST_F(StreamedPlan, ScheduleRefusesALateCopy) {
  std::swap(plan_.steps[2], plan_.steps[3]);
  EXPECT_TRUE(schedule().starts_with("[wrong_contents] step 2 (g1) reads")) << schedule();
}

TEST_F(StreamedPlan, BothRefuseAnEarlyCopy) {
  std::rotate(plan_.steps.begin() + 1, plan_.steps.begin() + 2, plan_.steps.begin() + 3);
  EXPECT_TRUE(schedule().starts_with("[wrong_contents] step 2 (g0) reads")) << schedule();
  EXPECT_TRUE(allocation().starts_with("[overlap]")) << allocation();
}

TEST_F(StreamedPlan, ScheduleRefusesACopyOfAnother) {
  plan_.steps[2].reads = plan_.steps[0].reads;
  EXPECT_TRUE(schedule().starts_with("[wrong_contents] step 2 (copy) copies")) << schedule();
  plan_.steps[2].reads = {2};
  plan_.instances[2].packing = "rows";
  EXPECT_TRUE(schedule().starts_with("[wrong_contents] step 2 (copy) copies")) << schedule();
}

TEST_F(StreamedPlan, ScheduleRefusesToComputeFromTheFile) {
  plan_.steps[1].reads[1] = plan_.steps[0].reads[0];
  EXPECT_EQ(schedule(), "[wrong_class] step 1 (g0) reads i1 'w_a', which stays in a file");
}

TEST_F(StreamedPlan, AllocationRefusesAWindowInTheFile) {
  const uint32_t window = plan_.steps[0].writes[0];
  plan_.instances[window].cls = BufferClass::kMapped;
  EXPECT_TRUE(allocation().starts_with("[wrong_class]")) << allocation();
}

TEST_F(StreamedPlan, AllocationRefusesAPeakWithoutAParameter) {
  plan_.instances[plan_.steps[0].reads[0]].cls = BufferClass::kParameter;
  EXPECT_TRUE(allocation().starts_with("[wrong_metrics] bytes of class parameter")) << allocation();
}

// Verifiers look at every plan, and a plan asked for with the smallest budget has it.
TEST(Streaming, KeepsOrRefusesBudgetsOfDrawnGraphs) {
  int streamed = 0;
  each_planned(40, [&](const Planned& made) {
    const auto plan = [&](int64_t budget) {
      return build_plan(made.lowered, made.needs,
                        {.threads = 2, .memory_budget = budget, .stream = true});
    };
    const auto free = plan(-1);
    const auto least = plan(kSmallestBudget);
    ASSERT_TRUE(free.ok());
    ASSERT_TRUE(least.ok()) << least.status().to_string();
    test::check_budgets(plan, free->host().peak_bytes, [&](const ExecutionPlan& tight) {
      EXPECT_EQ(tight.host().peak_bytes, least->host().peak_bytes);
      streamed += bytes_of(tight, BufferClass::kMapped) > 0 ? 1 : 0;
    });
  });
  EXPECT_GE(streamed, 5);
}

}  // namespace
}  // namespace pyc::plan
