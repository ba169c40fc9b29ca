// What a plan may search for is fixed by its effort: greedy offsets, or branch and bound behind
// them.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lowered_builder.h"
#include "plan/draft.h"
#include "plan/plan.h"

namespace pyc::plan {
namespace {

constexpr int kSteps = 24;
constexpr int kValues = 32;

// Steps in one order, each of which reads the one before; values live from one of them to another.
struct DrawnLives {
  lower::LoweredGraph lowered;
  std::vector<lower::KernelNeeds> needs;
};

DrawnLives draw_lives(uint32_t seed) {
  std::mt19937 random(seed);
  struct Life {
    int first;
    int last;
    int64_t bytes;
    ir::ValueId value = ir::kNoId;
  };
  std::vector<Life> lives;
  for (int i = 0; i < kValues; ++i) {
    const int first = static_cast<int>(random() % (kSteps - 1));
    const int last = std::min(kSteps - 1, first + 1 + static_cast<int>(random() % 8));
    lives.push_back({first, last, 64 * (1 + static_cast<int64_t>(random() % 40))});
  }
  LoweredBuilder builder;
  ir::ValueId before = builder.input("x", 64);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<ir::ValueId> reads = {before};
    std::vector<std::pair<std::string, int64_t>> writes = {{"s" + std::to_string(step), 64}};
    std::vector<Life*> written;
    for (size_t i = 0; i < lives.size(); ++i) {
      if (lives[i].last == step) reads.push_back(lives[i].value);
      if (lives[i].first != step) continue;
      writes.emplace_back("v" + std::to_string(i), lives[i].bytes);
      written.push_back(&lives[i]);
    }
    before = builder.group(reads, writes);
    for (size_t w = 0; w < written.size(); ++w) {
      written[w]->value = before + static_cast<ir::ValueId>(w) + 1;
    }
  }
  builder.output(before);
  std::vector<lower::KernelNeeds> needs = builder.needs;
  return {std::move(builder).finish(), std::move(needs)};
}

TEST(PlanEffort, MoreOfItNeverTakesMoreMemory) {
  int searched = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const DrawnLives drawn = draw_lives(seed);
    std::vector<int64_t> arenas;
    for (const Effort effort : {Effort::kFastDev, Effort::kBalanced, Effort::kMaxPerf}) {
      const auto plan = build_plan(drawn.lowered, drawn.needs, {.effort = effort});
      ASSERT_TRUE(plan.ok()) << plan.status().to_string();
      const auto placement = std::ranges::find(plan->decisions, "plan:placement", &Decision::what);
      ASSERT_NE(placement, plan->decisions.end());
      if (effort == Effort::kFastDev) {
        EXPECT_NE(placement->chosen, "branch_and_bound");
      }
      arenas.push_back(plan->host().arena_bytes);
    }
    EXPECT_TRUE(std::is_sorted(arenas.rbegin(), arenas.rend()));
    if (arenas[1] < arenas[0]) ++searched;
  }
  EXPECT_GT(searched, 0) << "no graph of these needs a search";
}

TEST(PlanEffort, SearchesTakeTenTimesTheWorkOrATenth) {
  const SearchWork usual = search_work(Effort::kBalanced);
  const SearchWork most = search_work(Effort::kMaxPerf);
  const SearchWork least = search_work(Effort::kFastDev);
  EXPECT_EQ(most.order, 10 * usual.order);
  EXPECT_EQ(most.offsets, 10 * usual.offsets);
  EXPECT_EQ(most.recompute, 10 * usual.recompute);
  EXPECT_EQ(10 * least.order, usual.order);
  EXPECT_EQ(least.offsets, 0);
  EXPECT_EQ(10 * least.recompute, usual.recompute);
}

}  // namespace
}  // namespace pyc::plan
