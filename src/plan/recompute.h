#pragma once

// Plans with less memory and more steps: a value that is read again much later need not be kept
// until then if the step that made it runs a second time.

#include <span>

#include "plan/types.h"

namespace pyc::plan {

// What a search for steps to run again may cost: about as many looks at a step. It is no clock: the
// same plan comes out on every machine.
inline constexpr int64_t kRecomputeWork = 20'000'000;

// What a search goes by.
struct RecomputeTask {
  const lower::LoweredGraph& lowered;
  std::span<const lower::KernelNeeds> needs;
  std::span<const double> group_ns;  // per group: what running it again costs, above 0
};

struct Recomputed {
  ExecutionPlan plan;  // no uses, no offsets
  double more_ns = 0;  // what the runs beyond the first of each group cost
  bool fits = false;   // no step uses more than the limit
};

// The plan with steps run again, in its order, so that no step uses more than `limit` bytes of the
// host's arena. The cheaper of two searches. One takes, one after the other, what lowers the bytes
// over the limit, summed over the steps, most for its time; then takes back what turned out not to
// be needed. The other does so too, but begins with the values that dynamic programming over the
// chain of those kept over the most crowded step finds cheapest (chain.h). Inputs of a step that
// runs again are kept for it where they fit and made again where not. A step that writes an output
// or a state runs once. Requires a plan of make_instances in any order of its steps.
Recomputed recompute(const RecomputeTask& task, const ExecutionPlan& plan, int64_t limit,
                     int64_t work = kRecomputeWork);

// The bytes of the arena that the largest single step names, results in place where they may be.
int64_t largest_step(const RecomputeTask& task, const ExecutionPlan& plan);

// Per step: whether its group has run before.
std::vector<bool> runs_again(const ExecutionPlan& plan);

}  // namespace pyc::plan
