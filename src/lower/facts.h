#pragma once

// What is known of a value's elements by the nodes that make it.

#include "ir/graph.h"

namespace pyc::lower {

// Whether every element is 0, less or NaN: x less its own maximum, -|x|, or such a value converted.
// False where that is not known.
bool at_most_zero(const ir::Graph& graph, ir::ValueId v);

}  // namespace pyc::lower
