// Dynamic programming over chains: against all choices, and plans never dearer by it.

#include "plan/chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "plan/lowered_builder.h"
#include "plan/plan.h"
#include "plan/recompute.h"

namespace pyc::plan {
namespace {

// The cost of a choice, or -1 where it frees too little or a run of it does not fit.
double cost_of(const std::vector<ChainValue>& values, const std::vector<bool>& dropped,
               int64_t need, int64_t limit) {
  int64_t freed = 0;
  int64_t kept = 0;
  int64_t run = 0;
  double ns = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!dropped[i]) {
      kept += values[i].bytes;
      run = 0;
      continue;
    }
    run += values[i].bytes;
    freed += values[i].bytes;
    ns += values[i].ns;
    if (kept + run > limit) return -1;
  }
  return freed >= need ? ns : -1;
}

TEST(Chain, IsTheCheapestOfAllChoices) {
  std::mt19937 random(5);
  int none = 0;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    std::vector<ChainValue> values(1 + random() % 9);
    int64_t all = 0;
    for (ChainValue& v : values) {
      v = {64 * static_cast<int64_t>(1 + random() % 9), static_cast<double>(1 + random() % 20)};
      all += v.bytes;
    }
    const auto need = static_cast<int64_t>(random() % static_cast<uint32_t>(all)) + 1;
    const int64_t limit = all / 2 + static_cast<int64_t>(random() % static_cast<uint32_t>(all));
    double least = -1;
    for (uint32_t set = 0; set < uint32_t{1} << values.size(); ++set) {
      std::vector<bool> dropped;
      for (size_t i = 0; i < values.size(); ++i) dropped.push_back((set >> i & 1U) != 0);
      const double ns = cost_of(values, dropped, need, limit);
      if (ns >= 0 && (least < 0 || ns < least)) least = ns;
    }
    const std::vector<bool> found = cheapest_of_chain(values, need, limit);
    if (least < 0) {
      EXPECT_TRUE(found.empty());
      ++none;
      continue;
    }
    ASSERT_EQ(found.size(), values.size());
    EXPECT_EQ(cost_of(values, found, need, limit), least);
  }
  EXPECT_GT(none, 0);
}

TEST(Chain, LongOnesAreCutShort) {
  std::mt19937 random(6);
  std::vector<ChainValue> values(400);
  int64_t all = 0;
  for (ChainValue& v : values) {
    v = {64 * static_cast<int64_t>(1 + random() % 999), static_cast<double>(1 + random() % 999)};
    all += v.bytes;
  }
  const std::vector<bool> found = cheapest_of_chain(values, all / 2, all);
  ASSERT_EQ(found.size(), values.size());
  EXPECT_GE(cost_of(values, found, all / 2, all), 0);
}

// Layers of a forward and a backward pass: value i is made of value i - 1 and read again on the way
// back, the last one first.
constexpr double kSumOfFirstSearch = 8989;  // 8439 with the chain

struct Layers {
  LoweredBuilder builder;
  std::vector<double> ns;
  lower::LoweredGraph lowered;

  Layers(std::mt19937& random, int count) : lowered(make(random, count)) {}

  lower::LoweredGraph make(std::mt19937& random, int count) {
    std::vector<ir::ValueId> values = {builder.input("x", 64)};
    for (int i = 0; i < count; ++i) {
      const int64_t bytes = 1024 * static_cast<int64_t>(1 + random() % 16);
      values.push_back(builder.group({values.back()}, {{"v" + std::to_string(i), bytes}}));
      ns.push_back(static_cast<double>(10 + random() % 90));
    }
    ir::ValueId back = values.back();
    for (int i = count - 1; i > 0; --i) {
      const auto value = values[static_cast<size_t>(i)];
      back = builder.group({back, value}, {{"d" + std::to_string(i), 64}});
      ns.push_back(50);
    }
    builder.output(back);
    return std::move(builder).finish();
  }
};

double more_ns(const ExecutionPlan& plan, const std::vector<double>& ns) {
  double more = 0;
  const std::vector<bool> again = runs_again(plan);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    if (again[s]) more += ns[plan.steps[s].group];
  }
  return more;
}

// Bytes and times are drawn, budgets from loose to tight. On such chains the first search alone was
// seen to cost more: its figure, summed over all budgets, is the limit.
TEST(Chain, BudgetsOfLayersAreMetForLess) {
  std::mt19937 random(9);
  double sum = 0;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const Layers layers(random, 12 + 6 * round);
    const auto plan = [&](int64_t budget) {
      return build_plan(layers.lowered, layers.builder.needs,
                        {.memory_budget = budget, .group_ns = layers.ns});
    };
    const auto free = plan(-1);
    ASSERT_TRUE(free.ok()) << free.status().to_string();
    for (const int64_t percent : {90, 75, 60}) {
      const int64_t budget = free->host().peak_bytes * percent / 100;
      const auto met = plan(budget);
      ASSERT_TRUE(met.ok()) << percent << " " << met.status().to_string();
      EXPECT_LE(met->host().peak_bytes, budget);
      EXPECT_EQ(print(*met), print(*plan(budget)));
      sum += more_ns(*met, layers.ns);
    }
  }
  EXPECT_LT(sum, kSumOfFirstSearch);
}

}  // namespace
}  // namespace pyc::plan
