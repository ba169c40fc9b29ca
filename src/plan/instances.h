#pragma once

#include <span>

#include "base/status.h"
#include "plan/types.h"

namespace pyc::plan {

// One instance of all that a run needs and one step per group, in the order of the groups: no uses,
// no offsets, no metrics yet. They come in this order: inputs, constants that some group reads as
// they are, packed constants (each once per
// packing), values that groups write, workspaces. Outputs of states lie where their inputs do,
// which place_states (states.h) makes true. Refuses groups that contradict the graph, the needs or
// one another with kInternal: lowering or selection is then wrong.
Result<ExecutionPlan> make_instances(const lower::LoweredGraph& lowered,
                                     std::span<const lower::KernelNeeds> needs,
                                     std::span<const StatePair> states);

}  // namespace pyc::plan
