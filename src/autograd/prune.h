#pragma once

#include "ir/graph.h"

namespace pyc::autograd {

// The graph without those nodes and constants that no output needs, except that the first
// `kept_nodes` nodes and `kept_values` values stay, numbered as they were.
ir::Graph without_unused(ir::Graph graph, size_t kept_nodes, size_t kept_values);

}  // namespace pyc::autograd
