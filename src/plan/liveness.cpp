#include "plan/liveness.h"

#include <algorithm>

namespace pyc::plan {

void set_lifetimes(ExecutionPlan& plan) {
  const int end = std::max(0, static_cast<int>(plan.steps.size()) - 1);
  for (PlannedBuffer& buffer : plan.buffers) {
    buffer.first_step = 0;
    buffer.last_step = end;
  }
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlannedStep& step = plan.steps[s];
    const int now = static_cast<int>(s);
    for (const uint32_t b : step.writes) {
      PlannedBuffer& buffer = plan.buffers[b];
      buffer.first_step = now;
      if (in_arena(buffer)) buffer.last_step = now;
    }
    for (const uint32_t b : step.reads) {
      if (in_arena(plan.buffers[b])) plan.buffers[b].last_step = now;
    }
    if (step.workspace != ir::kNoId) {
      plan.buffers[step.workspace].first_step = now;
      plan.buffers[step.workspace].last_step = now;
    }
  }
}

}  // namespace pyc::plan
