#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "plan/budget.h"
#include "plan/draft.h"
#include "plan/in_place.h"
#include "plan/instances.h"
#include "plan/liveness.h"
#include "plan/metrics.h"
#include "plan/offload.h"
#include "plan/order.h"
#include "plan/states.h"
#include "plan/stream.h"

namespace pyc::plan {
namespace {

// Takes the order instead if the draft it makes copies less for states or has a smaller arena.
void try_order(const Drafting& drafting, const StepOrder& order, Draft& best, Decision& decision) {
  Draft draft = drafting.draft(order, true);
  std::string name(order.found_by);  // "memory_aware_order"
  std::replace(name.begin(), name.end(), '_', '-');
  name[name.rfind('-')] = ' ';
  decision.detail += fmt::format(", {} in {}", draft.placement.arena_bytes, name);
  if (!draft.better_than(best)) return;
  decision.chosen = order.found_by;
  decision.reason = draft.copied_bytes < best.copied_bytes ? "fewer_copied_bytes" : "smaller_arena";
  best = std::move(draft);
}

// The plan in the order of the groups or in one that needs a smaller arena; one that copies less
// for states goes first.
Draft choose_order(const Drafting& drafting, const PlanOptions& options) {
  const ExecutionPlan& unordered = drafting.unordered;
  const PairsOfSteps& pairs = drafting.pairs;
  Draft draft = drafting.draft(program_order(unordered, pairs), options.reuse);
  Decision decision{"plan:order", "program_order", "no_smaller_arena", "", {}};
  if (!options.reuse) {
    decision.reason = "reuse_off";
    draft.plan.decisions.push_back(std::move(decision));
    return draft;
  }
  decision.detail = fmt::format("arena {} bytes in program order", draft.placement.arena_bytes);
  const StepOrder greedy = greedy_order(unordered, pairs);
  const bool other = !std::is_sorted(greedy.steps.begin(), greedy.steps.end());
  if (other) try_order(drafting, greedy, draft, decision);
  if (options.mode == PlanMode::kMemoryFirst) {
    const StepOrder least = least_memory_order(unordered, pairs, drafting.work.order);
    if (least.peak_bytes < draft.placement.arena_bytes && least.steps != greedy.steps) {
      try_order(drafting, least, draft, decision);
    }
    decision.detail += least.optimal ? fmt::format("; no order has less than {}", least.peak_bytes)
                                     : "; the search ended at its limit";
  } else if (!other) {
    decision.reason = "only_order";
    decision.detail = fmt::format("arena {} bytes", draft.placement.arena_bytes);
  }
  draft.plan.decisions.push_back(std::move(decision));
  return draft;
}

void log_instance(ExecutionPlan& plan, const Instance& instance, uint32_t in_place_of,
                  uint32_t previous) {
  const Lifetime life = lifetime(plan, instance);
  std::string detail = fmt::format("{} bytes, steps {}-{}", instance.bytes, life.first, life.last);
  std::string reason = previous != ir::kNoId ? "reuses_memory" : "fresh_memory";
  if (in_place_of != ir::kNoId) {
    reason = "in_place";
    detail += ", in place of " + plan.instances[in_place_of].name;
  } else if (previous != ir::kNoId) {
    detail += ", after " + plan.instances[previous].name;
  }
  plan.decisions.push_back({"buffer:" + instance.name,
                            fmt::format("offset {}", instance.offset),
                            std::move(reason),
                            std::move(detail),
                            {}});
}

std::string_view placement_reason(const Draft& draft, bool reuse) {
  if (!reuse) return "reuse_off";
  if (draft.placement.arena_bytes <= draft.lower_bound) return "reaches_lower_bound";
  return draft.placement.optimal ? "proven_smallest" : "smallest_tried";
}

void log_placement(Draft& draft, bool reuse) {
  ExecutionPlan& plan = draft.plan;
  const PlanMetrics& m = plan.host();
  plan.decisions.push_back({"plan:placement",
                            std::string(draft.placement.strategy),
                            std::string(placement_reason(draft, reuse)),
                            fmt::format("arena {} bytes, lower bound {}, without reuse {}",
                                        m.arena_bytes, draft.lower_bound, m.requested_bytes),
                            {}});
  const std::vector<uint32_t> sources = in_place_sources(plan);
  const std::vector<uint32_t> previous = previous_owners(plan, 0);
  for (size_t i = 0; i < plan.instances.size(); ++i) {
    if (!in_arena(plan.instances[i])) continue;
    log_instance(plan, plan.instances[i], sources[i], previous[i]);
  }
}

int64_t scratch_per_thread(std::span<const lower::KernelNeeds> needs) {
  int64_t most = 0;
  for (const lower::KernelNeeds& need : needs) most = std::max(most, need.scratch_bytes);
  return (most + kAlignment - 1) / kAlignment * kAlignment;
}

// Of a draft whose steps run once and one with steps run again, the one that fits the limit, or is
// smaller, when parameters stay in a file; the first if both do.
Draft stream_either(const Drafting& drafting, Draft once, Draft again, int64_t limit) {
  const bool differ = once.plan.steps.size() != again.plan.steps.size();
  Draft plain = stream_parameters(drafting, std::move(once), limit);
  if (!differ || arena_and_parameters(plain) <= limit) return plain;
  Draft both = stream_parameters(drafting, std::move(again), limit);
  return arena_and_parameters(both) < arena_and_parameters(plain) ? both : plain;
}

// The same for temporaries that move out.
Draft move_out_of_either(const Drafting& drafting, Draft once, Draft again, int64_t limit) {
  const bool differ = once.plan.steps.size() != again.plan.steps.size();
  Draft both = move_out(drafting, std::move(again), limit);
  if (!differ || both.placement.arena_bytes <= limit) return both;
  Draft plain = move_out(drafting, std::move(once), limit);
  return plain.placement.arena_bytes < both.placement.arena_bytes ? plain : both;
}

}  // namespace

Status check_budgets(const ExecutionPlan& plan, int threads) {
  for (const Place& place : plan.places) {
    const PlanMetrics& m = place.metrics;
    if (place.budget < 0 || m.peak_bytes <= place.budget) continue;
    const auto bytes = [&m](BufferClass cls) { return m.class_bytes[static_cast<size_t>(cls)]; };
    const std::string states =
        plan.states.empty() ? "" : fmt::format("state {}, ", bytes(BufferClass::kState));
    const std::string mapped =
        bytes(BufferClass::kMapped) == 0
            ? ""
            : fmt::format(" ({} more stay in a file)", bytes(BufferClass::kMapped));
    return {
        Code::kBudgetExceeded,
        fmt::format(
            "memory_budget of {}: expected a peak of at most {} bytes, found {}: host_input {}, "
            "parameter {}{}, output {}, {}arena {} (temporary {} and workspace {} before "
            "reuse), scratch {} ({} threads of {}); the smallest budget for this plan is {}",
            place.name, place.budget, m.peak_bytes, bytes(BufferClass::kHostInput),
            bytes(BufferClass::kParameter), mapped, bytes(BufferClass::kOutput), states,
            m.arena_bytes, bytes(BufferClass::kTemporary), bytes(BufferClass::kWorkspace),
            m.scratch_bytes * threads, threads, m.scratch_bytes, m.peak_bytes)};
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
  const Drafting drafting{lowered, needs, unordered, possible_pairs(lowered, needs, unordered),
                          search_work(options.effort)};
  PYC_ASSIGN(Draft draft, options.order.empty()
                              ? Result<Draft>(choose_order(drafting, options))
                              : draft_in_order(drafting, options.order, options.reuse));
  const int64_t scratch = scratch_per_thread(needs);
  const auto peak = [&] { return measure(draft.plan, 0).peak_bytes + scratch * options.threads; };
  const bool smallest = options.memory_budget == kSmallestBudget;
  const int64_t budget = smallest ? 0 : options.memory_budget;
  if (options.reuse && budget >= 0 && peak() > budget) {
    PlanOptions least = options;
    least.mode = PlanMode::kMemoryFirst;
    if (options.mode != least.mode) draft = choose_order(drafting, least);
    const int64_t limit = budget - (peak() - draft.placement.arena_bytes);
    if (peak() > budget && options.mode != PlanMode::kLatencyFirst) {
      const int64_t others = peak() - arena_and_parameters(draft);
      Draft once = draft;
      draft = fit_arena(drafting, std::move(draft), options.group_ns, limit);
      if (options.stream && peak() > budget) {
        draft = stream_either(drafting, std::move(once), std::move(draft), budget - others);
      } else if (options.offload && peak() > budget) {
        draft = move_out_of_either(drafting, std::move(once), std::move(draft), limit);
      }
    }
  }
  ExecutionPlan& plan = draft.plan;
  plan.places[0].budget = smallest ? -1 : budget;
  plan.host() = measure(plan, 0);
  plan.host().scratch_bytes = scratch;
  plan.host().peak_bytes += scratch * options.threads;
  for (uint32_t p = 1; p < plan.places.size(); ++p) plan.places[p].metrics = measure(plan, p);
  log_placement(draft, options.reuse);
  PYC_TRY(verify_schedule(lowered, plan, needs));
  PYC_TRY(verify_allocation(plan));
  PYC_TRY(check_budgets(plan, options.threads));
  return std::move(plan);
}

}  // namespace pyc::plan
