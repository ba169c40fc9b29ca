#pragma once

// Where the outputs of states are written: over their inputs if that can be, else elsewhere, from
// where a step copies them home.

#include <span>

#include "plan/types.h"

namespace pyc::plan {

// Moves steps so that what a state holds before a run is read before the step that overwrites it,
// where no step needs it the other way round: fewer bytes have to be copied. Requires a plan of
// make_instances.
void order_for_states(const lower::LoweredGraph& lowered, std::span<const lower::KernelNeeds> needs,
                      ExecutionPlan& plan);

// For the order that the steps are in: a state's output stays in the state's memory where every
// step that reads the input is over before, or is the writing one and its kernel allows the pair;
// with `share` off only where no step reads the input. Any other becomes a temporary, and a Copy
// step at the end brings it home. One decision per state. Returns the bytes that are copied.
// Requires a plan of make_instances.
int64_t place_states(const lower::LoweredGraph& lowered, std::span<const lower::KernelNeeds> needs,
                     ExecutionPlan& plan, bool share);

}  // namespace pyc::plan
