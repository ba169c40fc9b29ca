#pragma once

#include <vector>

#include "plan/types.h"

namespace pyc::plan {

// Another order for the steps of `plan`, which stand in one that can be executed: at each point,
// of the steps whose operands are ready, the one after which the fewest arena bytes are live; ties
// go to the one that stands earlier. Gives indices into plan.steps.
std::vector<size_t> memory_aware_order(const ExecutionPlan& plan);

}  // namespace pyc::plan
