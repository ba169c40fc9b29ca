#include <fmt/format.h>
#include <chrono>
#include "plan_suite.h"

namespace pyc::plan {
namespace {
TEST(PlanSuite, Draft) {
  for (size_t i = 0; i < 300; ++i) {
    SuiteGraph g = suite_graph(i);
    for (bool fuse : {true, false}) {
    auto p = lowered_for_plan(g.graph, fuse);
    if (!p.ok()) { fmt::print("{} {}\n", g.name, p.status().to_string()); continue; }
    for (PlanMode mode : {PlanMode::kBalanced, PlanMode::kMemoryFirst}) {
      const auto t0 = std::chrono::steady_clock::now();
      auto plan = build_plan(p->lowered, p->needs, {.threads = 2, .mode = mode});
      const auto t1 = std::chrono::steady_clock::now();
      ASSERT_TRUE(plan.ok()) << plan.status().to_string();
      const PlanMetrics& m = plan->host();
      fmt::print("{} fuse {} mode {} steps {} buffers {} arena {} bound {} ratio {:.3f} us {} {} | {}\n", g.name, fuse, int(mode), plan->steps.size(), m.buffers, m.arena_bytes,
        m.lower_bound_bytes, m.lower_bound_bytes ? double(m.arena_bytes) / double(m.lower_bound_bytes) : 1.0, std::chrono::duration_cast<std::chrono::microseconds>(t1-t0).count(), plan->decisions[0].to_string(), plan->decisions[1].to_string());
    }
    }
  }
}
}
}
