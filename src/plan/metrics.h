#pragma once

#include "plan/types.h"

namespace pyc::plan {

struct LivePeak {
  int64_t bytes = 0;  // largest sum of arena buffers live at one step (aligned)
  int step = 0;       // the first such step
};
LivePeak live_peak(const ExecutionPlan& plan);

// All metrics that follow from buffers and lifetimes; scratch_bytes is 0 and peak_bytes without it.
PlanMetrics measure(const ExecutionPlan& plan);

}  // namespace pyc::plan
