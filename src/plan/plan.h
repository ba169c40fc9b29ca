#pragma once

#include <span>

#include "base/status.h"
#include "plan/types.h"

namespace pyc::plan {

struct PlanOptions {
  int threads = 1;
  int64_t memory_budget = -1;  // bytes of metrics.peak_bytes; -1: none
  bool reuse = true;           // off: every arena buffer gets memory of its own
};

// Orders the groups' steps, computes lifetimes, assigns offsets and accounts for every byte.
// `needs[i]` is what the candidate chosen for group i asks for. Refuses with kBudgetExceeded,
// naming the budget and the peak, when the peak is over it. The result passed verify_schedule and
// verify_allocation.
Result<ExecutionPlan> build_plan(const lower::LoweredGraph& lowered,
                                 std::span<const lower::KernelNeeds> needs,
                                 const PlanOptions& options);

// Every group runs exactly once, after the groups that write what it reads.
Status verify_schedule(const lower::LoweredGraph& lowered, const ExecutionPlan& plan);

// Every arena buffer is aligned, inside the arena and disjoint from every other one that is live at
// the same time; every read or written buffer is live at that step; every buffer has the class its
// role asks for; the metrics equal what the buffers say.
Status verify_allocation(const ExecutionPlan& plan);

// The plan as text, for dumps and goldens.
std::string print(const ExecutionPlan& plan);

}  // namespace pyc::plan
