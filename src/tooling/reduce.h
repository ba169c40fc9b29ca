#pragma once

// Shrinks a graph that shows a fault: fewer outputs, nodes and elements, the fault still there.

#include <functional>

#include "base/status.h"
#include "ir/graph.h"

namespace pyc::tooling {

// Whether a graph, which is valid, still shows what is looked for.
using ReduceCheck = std::function<bool(const ir::Graph& graph)>;

// The smallest graph found with at most `max_tries` calls of the check. Nodes that are cut leave
// inputs in their place. kInvalidArgument when the graph itself does not show the fault.
Result<ir::Graph> reduce_graph(ir::Graph graph, const ReduceCheck& check, int64_t max_tries);

}  // namespace pyc::tooling
