#include "plan/draft.h"

#include <utility>

#include "plan/in_place.h"
#include "plan/liveness.h"
#include "plan/states.h"

namespace pyc::plan {

SearchWork search_work(Effort effort) {
  const SearchWork usual;
  if (effort == Effort::kFastDev) {
    return {.order = usual.order / 10, .offsets = 0, .recompute = usual.recompute / 10};
  }
  if (effort == Effort::kMaxPerf) {
    return {.order = usual.order * 10,
            .offsets = usual.offsets * 10,
            .recompute = usual.recompute * 10};
  }
  return usual;
}

Draft Drafting::draft(const StepOrder& order, bool reuse) const {
  Draft out{unordered, order.steps, {}, order.peak_bytes};
  PairsOfSteps ordered_pairs;
  for (size_t s = 0; s < order.steps.size(); ++s) {
    out.plan.steps[s] = unordered.steps[order.steps[s]];
    ordered_pairs.push_back(pairs[order.steps[s]]);
  }
  if (!unordered.states.empty()) {
    out.copied_bytes = place_states(lowered, needs, out.plan, reuse);
    // Outputs that are copied home are temporaries now.
    ordered_pairs = possible_pairs(lowered, needs, out.plan);
    out.lower_bound = program_order(out.plan, ordered_pairs).peak_bytes;
  }
  set_uses(out.plan);
  out.placement = place_instances(out.plan, 0, reuse, work.offsets);
  if (!reuse || out.placement.arena_bytes <= out.lower_bound) return out;
  ExecutionPlan in_place = out.plan;
  choose_in_place(ordered_pairs, in_place);
  const Placement placement = place_instances(in_place, 0, reuse, work.offsets);
  if (placement.arena_bytes >= out.placement.arena_bytes) return out;
  return {std::move(in_place), order.steps, placement, out.lower_bound, out.copied_bytes};
}

}  // namespace pyc::plan
