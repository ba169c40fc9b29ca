#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "plan/allocate.h"
#include "plan/in_place.h"
#include "plan/instances.h"
#include "plan/liveness.h"
#include "plan/metrics.h"
#include "plan/schedule.h"
#include "plan/states.h"

namespace pyc::plan {
namespace {

struct Draft {
  ExecutionPlan plan;
  Placement placement;
  int64_t copied_bytes = 0;  // to bring states home

  bool better_than(const Draft& other) const {
    if (copied_bytes != other.copied_bytes) return copied_bytes < other.copied_bytes;
    return placement.arena_bytes < other.placement.arena_bytes;
  }
};

using Needs = std::span<const lower::KernelNeeds>;

// With results in place where that makes the arena smaller.
Draft make_draft(const lower::LoweredGraph& lowered, Needs needs, ExecutionPlan plan, bool reuse) {
  const int64_t copied = place_states(lowered, needs, plan, reuse);
  set_uses(plan);
  ExecutionPlan in_place = plan;
  Draft draft{std::move(plan), {}, copied};
  draft.placement = place_instances(draft.plan, 0, reuse);
  if (!reuse) return draft;
  choose_in_place(lowered, needs, in_place);
  const Placement placement = place_instances(in_place, 0, reuse);
  if (placement.arena_bytes >= draft.placement.arena_bytes) return draft;
  return {std::move(in_place), placement, copied};
}

// The plan in the order of the groups or in the memory-aware one, whichever needs the smaller
// arena; the order of the groups when they are equal. One that copies less for states goes first.
Draft choose_order(const lower::LoweredGraph& lowered, Needs needs, const ExecutionPlan& unordered,
                   bool reuse) {
  Draft draft = make_draft(lowered, needs, unordered, reuse);
  Decision decision{"plan:order", "program_order", "", "", {}};
  const std::vector<size_t> order = memory_aware_order(unordered);
  if (!reuse) {
    decision.reason = "reuse_off";
  } else if (std::is_sorted(order.begin(), order.end())) {
    decision.reason = "only_order";
    decision.detail = fmt::format("arena {} bytes", draft.placement.arena_bytes);
  } else {
    ExecutionPlan reordered = unordered;
    std::transform(order.begin(), order.end(), reordered.steps.begin(),
                   [&](size_t s) { return unordered.steps[s]; });
    Draft other = make_draft(lowered, needs, std::move(reordered), reuse);
    decision.detail = fmt::format("arena {} bytes in program order, {} in memory-aware order",
                                  draft.placement.arena_bytes, other.placement.arena_bytes);
    if (other.better_than(draft)) {
      decision.chosen = "memory_aware_order";
      decision.reason =
          other.copied_bytes < draft.copied_bytes ? "fewer_copied_bytes" : "smaller_arena";
      draft = std::move(other);
    } else {
      decision.reason = "no_smaller_arena";
    }
  }
  draft.plan.decisions.push_back(std::move(decision));
  return draft;
}

// The last instance that had memory of `instance` before it, or null.
const Instance* previous_owner(const ExecutionPlan& plan, const Instance& instance) {
  const Instance* previous = nullptr;
  const int first = lifetime(plan, instance).first;
  for (const Instance& other : plan.instances) {
    if (!share_bytes(instance, other) || lifetime(plan, other).last >= first) continue;
    if (previous == nullptr || other.uses.back() > previous->uses.back()) previous = &other;
  }
  return previous;
}

void log_instance(ExecutionPlan& plan, const Instance& instance, uint32_t in_place_of) {
  const Instance* previous = previous_owner(plan, instance);
  const Lifetime life = lifetime(plan, instance);
  std::string detail = fmt::format("{} bytes, steps {}-{}", instance.bytes, life.first, life.last);
  std::string reason = previous != nullptr ? "reuses_memory" : "fresh_memory";
  if (in_place_of != ir::kNoId) {
    reason = "in_place";
    detail += ", in place of " + plan.instances[in_place_of].name;
  } else if (previous != nullptr) {
    detail += ", after " + previous->name;
  }
  plan.decisions.push_back({"buffer:" + instance.name,
                            fmt::format("offset {}", instance.offset),
                            std::move(reason),
                            std::move(detail),
                            {}});
}

void log_placement(ExecutionPlan& plan, const Placement& placement, bool reuse) {
  const PlanMetrics& m = plan.host();
  plan.decisions.push_back({"plan:placement",
                            std::string(placement.strategy),
                            !reuse                                 ? "reuse_off"
                            : m.arena_bytes == m.lower_bound_bytes ? "reaches_lower_bound"
                                                                   : "smallest_tried",
                            fmt::format("arena {} bytes, lower bound {}, without reuse {}",
                                        m.arena_bytes, m.lower_bound_bytes, m.requested_bytes),
                            {}});
  const std::vector<uint32_t> sources = in_place_sources(plan);
  for (size_t i = 0; i < plan.instances.size(); ++i) {
    if (in_arena(plan.instances[i])) log_instance(plan, plan.instances[i], sources[i]);
  }
}

int64_t scratch_per_thread(std::span<const lower::KernelNeeds> needs) {
  int64_t most = 0;
  for (const lower::KernelNeeds& need : needs) most = std::max(most, need.scratch_bytes);
  return (most + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Status check_budgets(const ExecutionPlan& plan, int threads) {
  for (const Place& place : plan.places) {
    const PlanMetrics& m = place.metrics;
    if (place.budget < 0 || m.peak_bytes <= place.budget) continue;
    const auto bytes = [&m](BufferClass cls) { return m.class_bytes[static_cast<size_t>(cls)]; };
    const std::string states =
        plan.states.empty() ? "" : fmt::format("state {}, ", bytes(BufferClass::kState));
    return {
        Code::kBudgetExceeded,
        fmt::format(
            "memory budget of {}: expected a peak of at most {} bytes, found {}: host_input {}, "
            "parameter {}, output {}, {}arena {} (temporary {} and workspace {} before "
            "reuse), scratch {} ({} threads of {})",
            place.name, place.budget, m.peak_bytes, bytes(BufferClass::kHostInput),
            bytes(BufferClass::kParameter), bytes(BufferClass::kOutput), states, m.arena_bytes,
            bytes(BufferClass::kTemporary), bytes(BufferClass::kWorkspace),
            m.scratch_bytes * threads, threads, m.scratch_bytes)};
  }
  return {};
}

Result<ExecutionPlan> build_plan(const lower::LoweredGraph& lowered,
                                 std::span<const lower::KernelNeeds> needs,
                                 const PlanOptions& options) {
  if (options.threads < 1) {
    return Status(Code::kInvalidArgument,
                  fmt::format("plan: expected at least 1 thread, found {}", options.threads));
  }
  PYC_ASSIGN(ExecutionPlan unordered, make_instances(lowered, needs, options.states));
  if (options.reuse) order_for_states(lowered, needs, unordered);
  Draft draft = choose_order(lowered, needs, unordered, options.reuse);
  ExecutionPlan& plan = draft.plan;
  plan.places[0].budget = options.memory_budget;
  plan.host() = measure(plan, 0);
  plan.host().scratch_bytes = scratch_per_thread(needs);
  plan.host().peak_bytes += plan.host().scratch_bytes * options.threads;
  log_placement(plan, draft.placement, options.reuse);
  PYC_TRY(verify_schedule(lowered, plan));
  PYC_TRY(verify_allocation(plan));
  PYC_TRY(check_budgets(plan, options.threads));
  return std::move(plan);
}

}  // namespace pyc::plan
