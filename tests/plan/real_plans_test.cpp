// The plans of the committed models, and each of them spoilt at every step.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "loop/in_place.h"
#include "lower/lower.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "plan/liveness.h"
#include "plan/metrics.h"
#include "plan/plan.h"

namespace pyc::plan {
namespace {

struct Real {
  lower::LoweredGraph lowered;
  ExecutionPlan plan;

  bool refused() {
    if (!verify_schedule(lowered, plan).ok()) return true;
    set_uses(plan);
    const PlanMetrics before = plan.host();
    plan.host() = measure(plan, 0);
    plan.host().scratch_bytes = before.scratch_bytes;
    plan.host().peak_bytes += before.scratch_bytes;
    return !verify_allocation(plan).ok();
  }
};

Real make_real(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  auto graph = ir::parse(text.str(), ops::all_ops());
  EXPECT_TRUE(graph.ok());
  auto verified = ir::verify_graph(std::move(*graph));
  EXPECT_TRUE(verified.ok());
  DecisionLog log;
  auto canonical = passes::run_pipeline(*verified, ops::all_ops(), {}, &log);
  EXPECT_TRUE(canonical.ok());
  auto lowered = lower::lower_graph(*canonical, {});
  EXPECT_TRUE(lowered.ok());
  std::vector<lower::KernelNeeds> needs;
  for (const lower::Group& g : lowered->groups) {
    needs.push_back({.workspace_bytes = 100,
                     .scratch_bytes = g.kernel.scratch_bytes(),
                     .packed = {},
                     .in_place = loop::in_place_pairs(g.kernel)});
  }
  auto plan = build_plan(*lowered, needs, {});
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return {std::move(*lowered), std::move(*plan)};
}

TEST(RealPlans, EverySpoiltStepIsRefused) {
  int in_place = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PYC_SOURCE_DIR "/tests/models")) {
    if (entry.path().extension() != ".ir") continue;
    SCOPED_TRACE(entry.path().filename());
    Real real = make_real(entry.path());
    ASSERT_FALSE(real.refused());
    const ExecutionPlan whole = real.plan;
    for (size_t s = 0; s < whole.steps.size(); ++s) {
      SCOPED_TRACE(s);
      real.plan = whole;
      real.plan.steps.erase(real.plan.steps.begin() + static_cast<int>(s));
      EXPECT_TRUE(real.refused()) << "a dropped step";
      if (whole.steps[s].in_place.empty()) continue;
      ++in_place;
      real.plan = whole;
      real.plan.steps[s].in_place.clear();
      EXPECT_TRUE(real.refused()) << "in place without saying so";
    }
    for (size_t i = 0; i < whole.instances.size(); ++i) {
      for (size_t j = 0; j < whole.instances.size(); ++j) {
        const Lifetime a = lifetime(whole, whole.instances[i]);
        const Lifetime b = lifetime(whole, whole.instances[j]);
        if (i == j || !in_arena(whole.instances[i]) || !in_arena(whole.instances[j])) continue;
        if (!live_together(a, b) || share_bytes(whole.instances[i], whole.instances[j])) continue;
        real.plan = whole;
        real.plan.instances[i].offset = real.plan.instances[j].offset;
        EXPECT_TRUE(real.refused()) << "an early reuse: " << i << " and " << j;
      }
    }
  }
  EXPECT_GT(in_place, 0);
}

}  // namespace
}  // namespace pyc::plan
