#include "plan/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lowered_builder.h"
#include "plan/in_place.h"
#include "plan/instances.h"
#include "plan/liveness.h"
#include "plan/metrics.h"
#include "plan/plan.h"

namespace pyc::plan {
namespace {

// Groups that read one to three of the values before them.
struct SmallCase {
  LoweredBuilder builder;
  lower::LoweredGraph lowered;
  ExecutionPlan plan;
  PairsOfSteps pairs;

  SmallCase(uint32_t seed, int groups) : lowered(draw(seed, groups)) {
    auto made = make_instances(lowered, builder.needs, {});
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    plan = std::move(made).value();
    pairs = possible_pairs(lowered, builder.needs, plan);
  }

  lower::LoweredGraph draw(uint32_t seed, int groups) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return random() % n; };
    std::vector<ir::ValueId> readable{builder.input("x", 256)};
    for (int g = 0; g < groups; ++g) {
      std::vector<ir::ValueId> reads;
      for (uint32_t i = 1 + below(3); i > 0; --i) {
        const auto back = std::min<size_t>(below(5), readable.size() - 1);
        const ir::ValueId value = readable[readable.size() - 1 - back];
        if (std::find(reads.begin(), reads.end(), value) == reads.end()) reads.push_back(value);
      }
      std::vector<std::pair<std::string, int64_t>> writes;
      for (uint32_t i = 1 + (below(4) == 0 ? 1 : 0); i > 0; --i) {
        writes.emplace_back("v" + std::to_string(g) + "_" + std::to_string(i),
                            64 * static_cast<int64_t>(1 + below(6)));
      }
      const ir::ValueId first = builder.group(reads, writes);
      for (size_t i = 0; i < writes.size(); ++i) {
        readable.push_back(first + static_cast<ir::ValueId>(i));
      }
      if (below(4) == 0) builder.needs.back().workspace_bytes = 64 * below(5);
      if (below(2) == 0) builder.needs.back().in_place = builder.equal_sizes();
    }
    builder.output(readable.back());
    return std::move(builder).finish();
  }

  // By the planner's own account of a finished plan.
  int64_t peak(const std::vector<size_t>& order) const {
    ExecutionPlan ordered = plan;
    PairsOfSteps ordered_pairs;
    for (size_t s = 0; s < order.size(); ++s) {
      ordered.steps[s] = plan.steps[order[s]];
      ordered_pairs.push_back(pairs[order[s]]);
    }
    set_uses(ordered);
    choose_in_place(ordered_pairs, ordered);
    return live_peak(ordered, 0).bytes;
  }

  bool can_run(const std::vector<size_t>& order) const {
    std::vector<bool> there(plan.instances.size(), true);
    for (const Step& step : plan.steps) {
      for (const uint32_t i : step.writes) there[i] = false;
    }
    for (const size_t s : order) {
      for (const uint32_t i : plan.steps[s].reads) {
        if (!there[i]) return false;
      }
      for (const uint32_t i : plan.steps[s].writes) there[i] = true;
    }
    return true;
  }

  int64_t least_peak() const {
    std::vector<size_t> order(plan.steps.size());
    for (size_t s = 0; s < order.size(); ++s) order[s] = s;
    int64_t least = INT64_MAX;
    do {
      if (can_run(order)) least = std::min(least, peak(order));
    } while (std::next_permutation(order.begin(), order.end()));
    return least;
  }
};

TEST(Order, SmallGraphsHaveTheLeastPeakOfAllOrders) {
  int better = 0;
  int searched = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const SmallCase small(seed, 7);
    const StepOrder plain = program_order(small.plan, small.pairs);
    const StepOrder greedy = greedy_order(small.plan, small.pairs);
    const StepOrder least = least_memory_order(small.plan, small.pairs, 100'000);
    for (const StepOrder* order : {&plain, &greedy, &least}) {
      ASSERT_EQ(order->steps.size(), small.plan.steps.size());
      ASSERT_TRUE(small.can_run(order->steps));
      ASSERT_EQ(order->peak_bytes, small.peak(order->steps)) << order->found_by;
    }
    ASSERT_TRUE(least.optimal);
    ASSERT_EQ(least.peak_bytes, small.least_peak());
    if (least.peak_bytes < std::min(plain.peak_bytes, greedy.peak_bytes)) ++better;
    if (least.found_by == "searched_order") ++searched;
  }
  EXPECT_GT(better, 0);
  EXPECT_GT(searched, 0);
}

// Without work it is the best of the orders that need no search, and nothing is proven.
TEST(Order, WhenTheWorkEndsTheBestSoFarIsTaken) {
  int unproven = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const SmallCase small(seed, 40);
    const StepOrder least = least_memory_order(small.plan, small.pairs, 0);
    const StepOrder more = least_memory_order(small.plan, small.pairs, 20'000);
    ASSERT_TRUE(small.can_run(least.steps));
    ASSERT_TRUE(small.can_run(more.steps));
    ASSERT_LE(least.peak_bytes, program_order(small.plan, small.pairs).peak_bytes);
    ASSERT_LE(more.peak_bytes, least.peak_bytes);
    if (!least.optimal) ++unproven;
  }
  EXPECT_GT(unproven, 0);
}

// Steps on two queues stay where they are: their order is what their events say.
TEST(Order, StepsOnSeveralQueuesAreNotMoved) {
  SmallCase small(3, 12);
  small.plan.steps[4].queue = 1;
  for (const StepOrder& order :
       {greedy_order(small.plan, small.pairs), least_memory_order(small.plan, small.pairs, 1000)}) {
    EXPECT_TRUE(std::is_sorted(order.steps.begin(), order.steps.end()));
  }
}

// Step 3 frees t and would run before step 2, but it writes anew what step 2 still has to read.
TEST(Order, AWriteStaysBehindTheReadsBeforeIt) {
  constexpr uint32_t kOut = 0;
  constexpr uint32_t kT = 1;
  constexpr uint32_t kU = 2;
  ExecutionPlan plan;
  plan.instances.resize(3);
  plan.instances[kOut].cls = BufferClass::kOutput;
  for (Instance& instance : plan.instances) instance.bytes = 1024;
  plan.steps.resize(5);
  plan.steps[0].writes = {kOut};
  plan.steps[1].writes = {kT};
  plan.steps[2].reads = {kOut};
  plan.steps[2].writes = {kU};
  plan.steps[3].reads = {kT};
  plan.steps[3].writes = {kOut};
  plan.steps[4].reads = {kU};
  const PairsOfSteps none(plan.steps.size());
  for (const StepOrder& order : {greedy_order(plan, none), least_memory_order(plan, none, 1000)}) {
    const auto at = [&](size_t s) {
      return std::find(order.steps.begin(), order.steps.end(), s) - order.steps.begin();
    };
    EXPECT_LT(at(0), at(2));
    EXPECT_LT(at(2), at(3));
  }
}

TEST(Order, MemoryFirstIsNeverWorseAndSometimesBetter) {
  int better = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const SmallCase small(seed, 30);
    const auto balanced = build_plan(small.lowered, small.builder.needs, {});
    const PlanOptions first{.threads = 1, .mode = PlanMode::kMemoryFirst};
    const auto least = build_plan(small.lowered, small.builder.needs, first);
    const auto again = build_plan(small.lowered, small.builder.needs, first);
    ASSERT_TRUE(balanced.ok() && least.ok() && again.ok());
    ASSERT_LE(least->host().arena_bytes, balanced->host().arena_bytes);
    ASSERT_EQ(print(*least), print(*again));
    if (least->host().arena_bytes < balanced->host().arena_bytes) ++better;
  }
  EXPECT_GT(better, 0);
}

}  // namespace
}  // namespace pyc::plan
