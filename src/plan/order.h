#pragma once

// In which order the steps of a plan run: any that keeps what a step reads and writes behind what
// was written and read before it gives the same bits, and they differ in memory.

#include <span>
#include <string_view>
#include <vector>

#include "lower/types.h"
#include "plan/types.h"

namespace pyc::plan {

struct StepOrder {
  std::vector<size_t> steps;  // indices into plan.steps
  // The largest sum of arena bytes in use at one step, with every result in place that may be.
  int64_t peak_bytes = 0;
  std::string_view found_by = "program_order";
  bool optimal = false;  // no order has a smaller peak
};

// What a search for an order knows of a plan: per step, the pairs of instances of which one may be
// written in place of the other if it is read for the last time (possible_pairs).
using PairsOfSteps = std::vector<std::vector<loop::InPlacePair>>;

// The steps of `plan`, which stand in an order that can be executed, as they stand.
StepOrder program_order(const ExecutionPlan& plan, const PairsOfSteps& pairs);

// At each point, of the steps that can run, the one after which the fewest arena bytes are live;
// ties go to the one that stands earlier.
StepOrder greedy_order(const ExecutionPlan& plan, const PairsOfSteps& pairs);

// The order of the smallest peak that is found: list scheduling with look-ahead, then a search
// through all orders that ends after `work` units of it, about as many as it looks at steps. It is
// no clock: the same plan has the same order on every machine. Of orders with the same peak the
// first found is returned, beginning with the program's own.
StepOrder least_memory_order(const ExecutionPlan& plan, const PairsOfSteps& pairs, int64_t work);

}  // namespace pyc::plan
