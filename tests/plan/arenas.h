#pragma once

// The arenas of 300 graphs against what some step of them needs, in both modes.

#include <fmt/format.h>

#include "plan_suite.h"

namespace pyc::plan {

inline constexpr size_t kGraphs = 300;
inline constexpr double kMostOverBound = 1.05;

struct Arena {
  int64_t bytes = 0;
  int64_t bound = 0;
  bool proven = false;  // no offsets have a smaller one in this order
};

inline const Decision& decision_of(const ExecutionPlan& plan, std::string_view what) {
  return *std::find_if(plan.decisions.begin(), plan.decisions.end(),
                       [&](const Decision& d) { return d.what == what; });
}

// The bound is the log's, which counts results that could be in place where the plan's do not.
inline Arena arena_of(const ExecutionPlan& plan) {
  const Decision& placement = decision_of(plan, "plan:placement");
  const std::string key = "lower bound ";
  const int64_t bound =
      std::stoll(placement.detail.substr(placement.detail.find(key) + key.size()));
  return {plan.host().arena_bytes, bound, placement.reason != "smallest_tried"};
}

// A line of bench/results/arenas.log.
inline void print_arenas(const std::string& name, bool fused, const std::vector<Arena>& arenas) {
  const auto over = [](const Arena& a) {
    return a.bound == 0 ? 1.0 : static_cast<double>(a.bytes) / static_cast<double>(a.bound);
  };
  fmt::print(
      "graph={} fused={} arena={} bound={} over={:.3f} memory_first={} bound={} over={:.3f}\n",
      name, fused ? "yes" : "no", arenas[0].bytes, arenas[0].bound, over(arenas[0]),
      arenas[1].bytes, arenas[1].bound, over(arenas[1]));
}

// Every `stride`-th graph; of all graphs each is printed.
inline void expect_arenas_at_bound(size_t stride) {
  size_t plans = 0;
  size_t at_bound = 0;
  size_t smaller = 0;
  for (size_t i = 0; i < kGraphs; i += stride) {
    const SuiteGraph graph = suite_graph(i);
    SCOPED_TRACE(graph.name);
    const auto lowered = lowered_for_plan(graph.graph, i % 2 == 0);
    ASSERT_TRUE(lowered.ok()) << lowered.status().to_string();
    std::vector<Arena> arenas;
    for (const PlanMode mode : {PlanMode::kBalanced, PlanMode::kMemoryFirst}) {
      const auto plan = build_plan(lowered->lowered, lowered->needs, {.threads = 2, .mode = mode});
      ASSERT_TRUE(plan.ok()) << plan.status().to_string();
      const Arena arena = arena_of(*plan);
      ASSERT_GE(arena.bytes, arena.bound);
      ++plans;
      if (arena.bytes == arena.bound) ++at_bound;
      EXPECT_TRUE(arena.proven || static_cast<double>(arena.bytes) <=
                                      kMostOverBound * static_cast<double>(arena.bound))
          << arena.bytes << " over " << arena.bound;
      arenas.push_back(arena);
    }
    ASSERT_LE(arenas[1].bytes, arenas[0].bytes);
    if (stride == 1) print_arenas(graph.name, i % 2 == 0, arenas);
    if (arenas[1].bytes < arenas[0].bytes) ++smaller;
  }
  fmt::print("graphs {}, plans {}, at their bound {}, smaller with memory_first {}\n", plans / 2,
             plans, at_bound, smaller);
  EXPECT_GE(100 * at_bound, 95 * plans) << at_bound << " of " << plans << " at their bound";
}

}  // namespace pyc::plan
