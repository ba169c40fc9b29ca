#pragma once

// Plans on the way to one: an order of steps with its offsets.

#include <span>
#include <vector>

#include "base/effort.h"
#include "plan/allocate.h"
#include "plan/offsets.h"
#include "plan/order.h"
#include "plan/recompute.h"

namespace pyc::plan {

struct Draft {
  ExecutionPlan plan;
  std::vector<size_t> order;  // of the unordered plan's steps
  Placement placement;
  int64_t lower_bound = 0;   // of the arena in this order, results in place or not
  int64_t copied_bytes = 0;  // to bring states home

  bool better_than(const Draft& other) const {
    if (copied_bytes != other.copied_bytes) return copied_bytes < other.copied_bytes;
    return placement.arena_bytes < other.placement.arena_bytes;
  }
};

// What the searches of one plan may cost, in looks at a step or a block and never by a clock.
struct SearchWork {
  int64_t order = 200'000;        // least_memory_order
  int64_t offsets = kOffsetWork;  // pack; 0: greedy orders only
  int64_t recompute = kRecomputeWork;
};
SearchWork search_work(Effort effort);

// What drafts of one plan have in common.
struct Drafting {
  const lower::LoweredGraph& lowered;
  std::span<const lower::KernelNeeds> needs;
  const ExecutionPlan& unordered;
  PairsOfSteps pairs;  // of the unordered plan
  SearchWork work = {};

  // The steps in the given order, with results in place where that makes the arena smaller.
  Draft draft(const StepOrder& order, bool reuse) const;
};

// In the order of PlanOptions::order, which has every group once; refuses as verify_schedule does
// an order that reads what is not there yet.
Result<Draft> draft_in_order(const Drafting& drafting, std::span<const uint32_t> groups,
                             bool reuse);

}  // namespace pyc::plan
