// An order of steps that somebody else chose.

#include <fmt/format.h>

#include <algorithm>

#include "plan/draft.h"
#include "plan/in_place.h"
#include "plan/liveness.h"
#include "plan/plan.h"

namespace pyc::plan {

Status check_order(std::span<const int64_t> order, size_t groups) {
  std::vector<bool> seen(groups);
  for (const int64_t g : order) {
    const bool there = g >= 0 && g < static_cast<int64_t>(groups);
    if (!there || seen[static_cast<size_t>(g)]) {
      return {Code::kInvalidArgument,
              fmt::format("order: expected each step of 0 to {} once, found {}{}", groups - 1, g,
                          there ? " twice" : "")};
    }
    seen[static_cast<size_t>(g)] = true;
  }
  if (order.size() == groups) return {};
  return {Code::kInvalidArgument,
          fmt::format("order: expected {} steps, found {}", groups, order.size())};
}

Result<Draft> draft_in_order(const Drafting& drafting, std::span<const uint32_t> groups,
                             bool reuse) {
  StepOrder order{.steps = {}, .found_by = "given_order"};
  ExecutionPlan ordered = drafting.unordered;
  for (const uint32_t g : groups) {
    const auto step = std::ranges::find(drafting.unordered.steps, g, &Step::group);
    ordered.steps[order.steps.size()] = *step;
    order.steps.push_back(static_cast<size_t>(step - drafting.unordered.steps.begin()));
  }
  set_uses(ordered);
  // Each in memory of its own: what is read is the order's.
  place_instances(ordered, 0, false, 0);
  PYC_TRY(verify_schedule(drafting.lowered, ordered).with_context("order of steps"));
  const PairsOfSteps pairs = possible_pairs(drafting.lowered, drafting.needs, ordered);
  order.peak_bytes = program_order(ordered, pairs).peak_bytes;
  Draft draft = drafting.draft(order, reuse);
  draft.plan.decisions.push_back(
      {.what = "plan:order",
       .chosen = std::string(order.found_by),
       .reason = "chosen_by_policy",
       .detail = fmt::format("arena {} bytes", draft.placement.arena_bytes),
       .alternatives = {}});
  return draft;
}

}  // namespace pyc::plan
