#pragma once

#include "ir/graph.h"

namespace pyc::ir {

// Whether verify_graph would accept the graph, which stays where it is.
Status check_graph(const Graph& graph, const VerifiedGraph* before = nullptr);

}  // namespace pyc::ir
