#pragma once

// What is known of a value's elements by the nodes that make it; each op says so of its own.

#include "ir/graph.h"

namespace pyc::ir {

// Whether every element is 0, less or NaN. False where that is not known.
bool at_most_zero(const Graph& graph, ValueId v);

}  // namespace pyc::ir
