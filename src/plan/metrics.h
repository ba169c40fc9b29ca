#pragma once

#include <vector>

#include "plan/types.h"

namespace pyc::plan {

struct LivePeak {
  int64_t bytes = 0;  // largest sum of arena instances live at one step (aligned)
  int step = 0;       // the first such step
};
// What is written in place takes no memory of its own at the step that writes it.
LivePeak live_peak(const ExecutionPlan& plan, uint32_t place);
// Per step: that sum.
std::vector<int64_t> live_bytes(const ExecutionPlan& plan, uint32_t place);

// Per instance: which had some of its memory in the place's arena last before it, or kNoId; of
// several the one that was used last. Requires offsets that share as verify_allocation asks.
std::vector<uint32_t> previous_owners(const ExecutionPlan& plan, uint32_t place);

// All metrics of a place that follow from instances and steps; scratch_bytes is 0 and peak_bytes
// without it.
PlanMetrics measure(const ExecutionPlan& plan, uint32_t place);

}  // namespace pyc::plan
