// Properties of plans for random graphs, checked by plain means.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lowered_builder.h"
#include "plan/liveness.h"
#include "plan/plan.h"

namespace pyc::plan {
namespace {

constexpr int kSeeds = 600;

struct RandomCase {
  explicit RandomCase(uint32_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  int64_t random_bytes() {
    switch (below(5)) {
      case 0:
        return below(4);
      case 1:
        return 64 * below(20);
      default:
        return below(3000);
    }
  }

  lower::LoweredGraph make() {
    std::vector<ir::ValueId> readable;
    for (int64_t i = below(3); i >= 0; --i) {
      readable.push_back(builder.input("x" + std::to_string(i), random_bytes()));
    }
    for (int64_t i = below(3); i > 0; --i) {
      constants_.push_back(builder.constant("w" + std::to_string(i), 1 + below(500)));
    }
    readable.insert(readable.end(), constants_.begin(), constants_.end());
    const int64_t groups = 1 + below(24);
    for (int64_t g = 0; g < groups; ++g) add_group(g, readable);
    return std::move(builder).finish();
  }

  LoweredBuilder builder;

 private:
  void add_group(int64_t g, std::vector<ir::ValueId>& readable) {
    std::vector<ir::ValueId> reads;
    for (int64_t i = below(4); i >= 0; --i) {
      // Mostly recent values, sometimes old ones.
      const auto size = static_cast<int64_t>(readable.size());
      const int64_t back = below(3) == 0 ? below(size) : below(std::min<int64_t>(size, 4));
      reads.push_back(readable[static_cast<size_t>(size - 1 - back)]);
    }
    std::vector<std::pair<std::string, int64_t>> writes;
    for (int64_t i = below(3) == 0 ? 2 : 1; i > 0; --i) {
      writes.emplace_back("v" + std::to_string(g) + "_" + std::to_string(i), random_bytes());
    }
    const ir::ValueId first = builder.group(reads, writes);
    for (size_t i = 0; i < writes.size(); ++i) {
      const ir::ValueId value = first + static_cast<ir::ValueId>(i);
      readable.push_back(value);
      if (g == 0 ? i == 0 : below(6) == 0) builder.output(value);
    }
    lower::KernelNeeds& needs = builder.needs.back();
    if (below(4) == 0) needs.workspace_bytes = below(2000);
    if (below(4) == 0) needs.scratch_bytes = below(1000);
    if (below(2) == 0) needs.in_place = builder.equal_sizes();
    for (const ir::ValueId constant : constants_) {
      const bool reads_it = std::find(reads.begin(), reads.end(), constant) != reads.end();
      if (!reads_it || below(2) != 0) continue;
      const int64_t bytes = 200 * below(5);
      needs.packed.push_back({constant, bytes, std::to_string(bytes)});
    }
  }

  std::mt19937 random_;
  std::vector<ir::ValueId> constants_;
};

bool is_arena(const Instance& b) {
  return b.cls == BufferClass::kTemporary || b.cls == BufferClass::kWorkspace;
}

int64_t padded(int64_t bytes) { return std::max<int64_t>(64, (bytes + 63) / 64 * 64); }

// First and last step that use the buffer.
std::pair<int, int> uses(const ExecutionPlan& plan, uint32_t buffer) {
  int first = -1;
  int last = -1;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    const bool used = std::count(step.reads.begin(), step.reads.end(), buffer) > 0 ||
                      std::count(step.writes.begin(), step.writes.end(), buffer) > 0 ||
                      step.workspace == buffer;
    if (!used) continue;
    if (first < 0) first = static_cast<int>(s);
    last = static_cast<int>(s);
  }
  return {first, last};
}

void expect_lifetimes(const ExecutionPlan& plan) {
  const int end = static_cast<int>(plan.steps.size()) - 1;
  for (uint32_t b = 0; b < plan.instances.size(); ++b) {
    const Instance& buffer = plan.instances[b];
    const auto [first, last] = uses(plan, b);
    const Lifetime life = lifetime(plan, buffer);
    switch (buffer.cls) {
      case BufferClass::kHostInput:
      case BufferClass::kParameter:
      case BufferClass::kState:
      case BufferClass::kMapped:
        ASSERT_EQ(life.first, 0);
        ASSERT_EQ(life.last, end);
        break;
      case BufferClass::kOutput:
        ASSERT_EQ(life.first, first);
        ASSERT_EQ(life.last, end);
        break;
      case BufferClass::kTemporary:
      case BufferClass::kWorkspace:
        ASSERT_EQ(life.first, first) << buffer.name;
        ASSERT_EQ(life.last, last) << buffer.name;
        break;
    }
  }
}

// Plays the run step by step and byte by byte (in units of 64): nobody's memory is taken while it
// is live, but by what its last step writes in place. Gives the largest number of bytes in use at
// once.
int64_t play(const ExecutionPlan& plan) {
  std::vector<uint32_t> owner(static_cast<size_t>(plan.host().arena_bytes / 64), ir::kNoId);
  int64_t most = 0;
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    std::vector<bool> in_use(owner.size(), false);
    const auto each_unit = [&](bool first_time, const auto& visit) {
      for (uint32_t b = 0; b < plan.instances.size(); ++b) {
        const Instance& buffer = plan.instances[b];
        const Lifetime life = lifetime(plan, buffer);
        if (!is_arena(buffer) || s < life.first || s > life.last) continue;
        if ((s == life.first) != first_time) continue;
        EXPECT_EQ(buffer.offset % 64, 0);
        EXPECT_LE(buffer.offset + padded(buffer.bytes), plan.host().arena_bytes);
        for (int64_t unit = 0; unit < padded(buffer.bytes) / 64; ++unit) {
          visit(b, static_cast<size_t>(buffer.offset / 64 + unit));
        }
      }
    };
    each_unit(false, [&](uint32_t b, size_t unit) {
      EXPECT_EQ(owner.at(unit), b) << plan.instances[b].name << " lost its memory";
      in_use[unit] = true;
    });
    each_unit(true, [&](uint32_t b, size_t unit) {
      const auto& pairs = plan.steps[static_cast<size_t>(s)].in_place;
      const bool in_place =
          std::count(pairs.begin(), pairs.end(), loop::InPlacePair{owner.at(unit), b}) > 0;
      EXPECT_TRUE(in_place || !in_use[unit]) << plan.instances[b].name << " takes memory in use";
      in_use[unit] = true;
      owner.at(unit) = b;
    });
    most =
        std::max(most, 64 * static_cast<int64_t>(std::count(in_use.begin(), in_use.end(), true)));
  }
  return most;
}

TEST(RandomPlans, KeepEveryPromise) {
  int64_t arenas = 0;
  int64_t bounds = 0;
  int reordered = 0;
  int64_t in_place = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    RandomCase random(seed);
    const lower::LoweredGraph lowered = random.make();
    const PlanOptions options{.threads = 1 + static_cast<int>(seed % 5)};
    const auto plan = build_plan(lowered, random.builder.needs, options);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    expect_lifetimes(*plan);
    const int64_t most = play(*plan);
    ASSERT_FALSE(HasFailure());
    ASSERT_EQ(plan->host().lower_bound_bytes, most);
    ASSERT_GE(plan->host().arena_bytes, most);
    ASSERT_LE(plan->host().arena_bytes, plan->host().requested_bytes);

    const auto again = build_plan(lowered, random.builder.needs, options);
    ASSERT_TRUE(again.ok());
    ASSERT_EQ(print(*again), print(*plan));

    const auto plain =
        build_plan(lowered, random.builder.needs, {.threads = options.threads, .reuse = false});
    ASSERT_TRUE(plain.ok());
    play(*plain);
    ASSERT_EQ(plain->host().arena_bytes, plain->host().requested_bytes);
    ASSERT_EQ(plain->host().requested_bytes, plan->host().requested_bytes);
    ASSERT_EQ(plain->host().reused, 0);

    arenas += plan->host().arena_bytes;
    bounds += plan->host().lower_bound_bytes;
    if (plan->decisions[0].chosen == "memory_aware_order") ++reordered;
    in_place += plan->host().in_place;
  }
  EXPECT_GT(reordered, 0);
  EXPECT_GT(in_place, 0);
  EXPECT_LT(static_cast<double>(arenas), 1.02 * static_cast<double>(bounds));
  RecordProperty("arena_per_mille_of_bound", static_cast<int>(arenas * 1000 / bounds));
}

TEST(RandomPlans, KeepBudgetsByRunningStepsAgain) {
  int64_t again = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    RandomCase random(seed);
    const lower::LoweredGraph lowered = random.make();
    const auto plan = [&](int64_t budget) {
      return build_plan(lowered, random.builder.needs, {.memory_budget = budget});
    };
    const auto free = plan(-1);
    const auto least = plan(kSmallestBudget);
    ASSERT_TRUE(free.ok() && least.ok()) << least.status().to_string();
    ASSERT_LE(least->host().peak_bytes, free->host().peak_bytes);
    play(*least);
    ASSERT_FALSE(HasFailure());
    again += static_cast<int64_t>(least->steps.size() - free->steps.size());
    const int64_t smallest = least->host().peak_bytes;
    if (smallest == free->host().peak_bytes) continue;
    for (const int64_t budget : {smallest, (smallest + free->host().peak_bytes) / 2}) {
      const auto tight = plan(budget);
      ASSERT_TRUE(tight.ok()) << tight.status().to_string();
      ASSERT_LE(tight->host().peak_bytes, budget);
      play(*tight);
      ASSERT_FALSE(HasFailure());
    }
    ASSERT_EQ(plan(smallest - 1).status().code(), Code::kBudgetExceeded);
  }
  EXPECT_GT(again, 100);
}

}  // namespace
}  // namespace pyc::plan
