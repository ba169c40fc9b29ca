#include "driver/predict.h"

#include <algorithm>
#include <utility>

#include "base/fp_state.h"
#include "driver/contract.h"
#include "driver/devices.h"
#include "driver/front.h"
#include "driver/targets.h"
#include "plan/plan.h"
#include "plan/recompute.h"

namespace pyc::driver {

Result<Prediction> predict(ir::VerifiedGraph given, CompileOptions o, bool smallest) {
  const FpStateGuard fp_state;  // costs do not depend on the caller's
  PYC_TRY(check_options(o));
  PYC_ASSIGN(const backends::Backend* backend, find_backend(o.device));
  PYC_TRY(check_target(*backend, o.target));
  if (smallest) o.memory_budget = plan::kSmallestBudget;
  PYC_ASSIGN(const Front front, plan_graph(std::move(given), o, TimeLimit(o)));
  PYC_TRY(check_latency(o, front.log));
  int64_t copied = 0;
  for (const plan::Place& place : front.plan.places) copied += place.metrics.copied_bytes;
  return Prediction{.peak_bytes = front.plan.host().peak_bytes,
                    .arena_bytes = front.plan.host().arena_bytes,
                    .steps = static_cast<int64_t>(front.plan.steps.size()),
                    .recomputed_steps = std::ranges::count(plan::runs_again(front.plan), true),
                    .run_ns = predicted_ns(front.log),
                    .copied_bytes = copied};
}

}  // namespace pyc::driver
