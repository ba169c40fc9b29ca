#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "plan/allocate.h"
#include "plan/buffers.h"
#include "plan/liveness.h"
#include "plan/metrics.h"
#include "plan/schedule.h"

namespace pyc::plan {
namespace {

struct Draft {
  ExecutionPlan plan;
  Placement placement;
};

Draft make_draft(ExecutionPlan plan, bool reuse) {
  set_lifetimes(plan);
  const Placement placement = place_buffers(plan, reuse);
  return {std::move(plan), placement};
}

// The plan in the order of the groups or in the memory-aware one, whichever needs the smaller
// arena; the order of the groups when they are equal.
Draft choose_order(const ExecutionPlan& unordered, bool reuse) {
  Draft draft = make_draft(unordered, reuse);
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
    Draft other = make_draft(std::move(reordered), reuse);
    decision.detail = fmt::format("arena {} bytes in program order, {} in memory-aware order",
                                  draft.placement.arena_bytes, other.placement.arena_bytes);
    if (other.placement.arena_bytes < draft.placement.arena_bytes) {
      decision.chosen = "memory_aware_order";
      decision.reason = "smaller_arena";
      draft = std::move(other);
    } else {
      decision.reason = "no_smaller_arena";
    }
  }
  draft.plan.decisions.push_back(std::move(decision));
  return draft;
}

// The last buffer that had memory of `buffer` before it, or null.
const PlannedBuffer* previous_owner(const ExecutionPlan& plan, const PlannedBuffer& buffer) {
  const PlannedBuffer* previous = nullptr;
  for (const PlannedBuffer& other : plan.buffers) {
    if (!in_arena(other) || other.last_step >= buffer.first_step) continue;
    const bool shares = other.offset < buffer.offset + arena_size(buffer) &&
                        buffer.offset < other.offset + arena_size(other);
    if (shares && (previous == nullptr || other.last_step > previous->last_step)) previous = &other;
  }
  return previous;
}

void log_placement(ExecutionPlan& plan, const Placement& placement, bool reuse) {
  const PlanMetrics& m = plan.metrics;
  plan.decisions.push_back({"plan:placement",
                            std::string(placement.strategy),
                            !reuse                                 ? "reuse_off"
                            : m.arena_bytes == m.lower_bound_bytes ? "reaches_lower_bound"
                                                                   : "smallest_tried",
                            fmt::format("arena {} bytes, lower bound {}, without reuse {}",
                                        m.arena_bytes, m.lower_bound_bytes, m.requested_bytes),
                            {}});
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (!in_arena(buffer)) continue;
    const PlannedBuffer* previous = previous_owner(plan, buffer);
    std::string detail =
        fmt::format("{} bytes, steps {}-{}", buffer.bytes, buffer.first_step, buffer.last_step);
    if (previous != nullptr) detail += ", after " + previous->name;
    plan.decisions.push_back({"buffer:" + buffer.name,
                              fmt::format("offset {}", buffer.offset),
                              previous != nullptr ? "reuses_memory" : "fresh_memory",
                              std::move(detail),
                              {}});
  }
}

Status check_budget(const PlanMetrics& m, const PlanOptions& options) {
  if (options.memory_budget < 0 || m.peak_bytes <= options.memory_budget) return {};
  const auto bytes = [&m](BufferClass cls) { return m.class_bytes[static_cast<size_t>(cls)]; };
  return {
      Code::kBudgetExceeded,
      fmt::format("memory budget: expected a peak of at most {} bytes, found {}: host_input {}, "
                  "parameter {}, output {}, arena {} (temporary {} and workspace {} before "
                  "reuse), scratch {} ({} threads of {})",
                  options.memory_budget, m.peak_bytes, bytes(BufferClass::kHostInput),
                  bytes(BufferClass::kParameter), bytes(BufferClass::kOutput), m.arena_bytes,
                  bytes(BufferClass::kTemporary), bytes(BufferClass::kWorkspace),
                  m.scratch_bytes * options.threads, options.threads, m.scratch_bytes)};
}

int64_t scratch_per_thread(std::span<const lower::KernelNeeds> needs) {
  int64_t most = 0;
  for (const lower::KernelNeeds& need : needs) most = std::max(most, need.scratch_bytes);
  return (most + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Result<ExecutionPlan> build_plan(const lower::LoweredGraph& lowered,
                                 std::span<const lower::KernelNeeds> needs,
                                 const PlanOptions& options) {
  if (options.threads < 1) {
    return Status(Code::kInvalidArgument,
                  fmt::format("plan: expected at least 1 thread, found {}", options.threads));
  }
  PYC_ASSIGN(const ExecutionPlan unordered, make_buffers(lowered, needs));
  Draft draft = choose_order(unordered, options.reuse);
  ExecutionPlan& plan = draft.plan;
  plan.metrics = measure(plan);
  plan.metrics.scratch_bytes = scratch_per_thread(needs);
  plan.metrics.peak_bytes += plan.metrics.scratch_bytes * options.threads;
  log_placement(plan, draft.placement, options.reuse);
  PYC_TRY(verify_schedule(lowered, plan));
  PYC_TRY(verify_allocation(plan));
  PYC_TRY(check_budget(plan.metrics, options));
  return std::move(plan);
}

}  // namespace pyc::plan
