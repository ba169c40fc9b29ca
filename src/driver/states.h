#pragma once

#include <vector>

#include "base/status.h"
#include "driver/compile_options.h"
#include "ir/graph.h"
#include "plan/types.h"

namespace pyc::driver {

// The pairs of the option `state` as inputs and outputs of the graph. Refuses a name that is none
// of them (kUnknownOption, with the nearest), an input or output that two pairs name
// (kInvalidArgument), and two types (kDtypeMismatch, kRankMismatch, kShapeMismatch).
Result<std::vector<plan::StatePair>> find_states(const ir::Graph& graph, const StatePairs& names);

}  // namespace pyc::driver
