#include "driver/smaller_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "ops/registry.h"
#include "passes/split_rows.h"
#include "plan/recompute.h"

namespace pyc::driver {
namespace {

Status go_by_parts(const Replan& replan, Planned& planned, DecisionLog& log) {
  constexpr double kWorthIt = 0.9;
  const ir::VerifiedGraph& whole = planned.grouped.canonical;
  PYC_ASSIGN(const ir::VerifiedGraph canonical, passes::split_rows(whole, ops::all_ops()));
  if (canonical->nodes.size() == whole->nodes.size()) return {};
  PYC_ASSIGN(Planned parts, replan(canonical, {}));
  if (!parts.plan.ok()) return {};
  const int64_t arena = parts.plan->host().arena_bytes;
  std::string detail = fmt::format("arena {} bytes", arena);
  if (planned.plan.ok()) {
    const int64_t before = planned.plan->host().arena_bytes;
    if (static_cast<double>(arena) > kWorthIt * static_cast<double>(before)) return {};
    detail += fmt::format(", {} with all rows at once", before);
  }
  log.push_back({"plan:parts", "rows in parts", "smaller_arena", std::move(detail), {}});
  planned = std::move(parts);
  return {};
}

bool misses_budget(const Planned& planned) {
  return !planned.plan.ok() && planned.plan.status().code() == Code::kBudgetExceeded;
}

double run_ns(const Planned& planned) {
  double sum = 0;
  for (const plan::Step& step : planned.plan->steps) {
    if (step.kind == plan::StepKind::kRun) sum += planned.options.group_ns[step.group];
  }
  return sum;
}

int64_t smallest_peak(const Planned& planned) {
  plan::PlanOptions options = planned.options;
  options.memory_budget = plan::kSmallestBudget;
  const auto plan =
      plan::build_plan(planned.grouped.lowered, planned.grouped.selection.needs, options);
  return plan.ok() ? plan->host().peak_bytes : std::numeric_limits<int64_t>::max();
}

bool is_better(const Planned& sums, const Planned& planned) {
  if (!planned.plan.ok()) return true;
  const plan::PlanMetrics& now = sums.plan->host();
  const plan::PlanMetrics& before = planned.plan->host();
  if (planned.options.memory_budget == plan::kSmallestBudget) {
    return now.peak_bytes < before.peak_bytes;
  }
  return now.copied_bytes <= before.copied_bytes && run_ns(sums) < run_ns(planned);
}

Status keep_sums(const Replan& replan, Planned& planned, DecisionLog& log) {
  const std::set<std::string> names = made_of_sums(planned.grouped.lowered);
  if (names.empty()) return {};
  PYC_ASSIGN(Planned sums, replan(planned.grouped.canonical, names));
  if (misses_budget(planned) && misses_budget(sums)) {
    // The refusal names the smaller of what would do.
    if (smallest_peak(sums) < smallest_peak(planned)) planned = std::move(sums);
    return {};
  }
  if (!sums.plan.ok() || !is_better(sums, planned)) return {};
  log.push_back({"plan:sums",
                 fmt::format("{} kept", names.size()),
                 "over_budget",
                 fmt::format("what is made of them runs again instead; {:.1f} us predicted",
                             run_ns(sums) / 1e3),
                 {}});
  planned = std::move(sums);
  return {};
}

}  // namespace

Status find_smaller_groups(const CompileOptions& options, const Replan& replan, Planned& planned,
                           DecisionLog& log) {
  // A policy was asked about the usual groups; temporaries that move out are kept otherwise.
  if (!options.policy.empty() || planned.options.offload) return {};
  if (options.mode == kMemoryFirst) PYC_TRY(go_by_parts(replan, planned, log));
  const bool short_of_memory = planned.plan.ok()
                                   ? std::ranges::count(plan::runs_again(*planned.plan), true) > 0
                                   : misses_budget(planned);
  if (!short_of_memory || options.mode == kLatencyFirst || options.effort == kFastDev) return {};
  return keep_sums(replan, planned, log);
}

std::set<std::string> made_of_sums(const lower::LoweredGraph& lowered) {
  const ir::Graph& graph = *lowered.graph;
  std::set<std::string> names;
  for (const lower::Group& group : lowered.groups) {
    if (!group.contraction) continue;
    std::vector<ir::ValueId> kept;
    for (const ir::NodeId n : group.members) {
      for (const ir::ValueId v : graph.nodes[n].outputs) {
        const bool stored = std::ranges::count(group.buffer_values, v) > 0;
        if (stored && std::ranges::count(lowered.output_values, v) == 0) kept.push_back(v);
      }
    }
    if (kept.size() > 1) names.insert(graph.value(kept.front()).name);
  }
  return names;
}

}  // namespace pyc::driver
