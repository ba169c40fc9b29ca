#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "plan/types.h"

namespace pyc::plan {

// The name of the buffer that holds `value` packed for `group`.
std::string packed_name(const ir::Value& value, const lower::Group& group);

// All buffers a run needs and one step per group, in the order of the groups: no lifetimes, no
// offsets, no metrics yet. Buffers come in this order: inputs, constants that some group reads as
// they are, packed constants, values that groups write, workspaces. Refuses groups that contradict
// the graph, the needs or one another with kInternal: lowering or selection is then wrong.
Result<ExecutionPlan> make_buffers(const lower::LoweredGraph& lowered,
                                   std::span<const lower::KernelNeeds> needs);

}  // namespace pyc::plan
