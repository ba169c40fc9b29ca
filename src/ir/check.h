#pragma once

#include "ir/graph.h"

namespace pyc::ir {

// Whether verify_graph would accept the graph, which stays where it is.
Status check_graph(const Graph& graph, const VerifiedGraph* before = nullptr);

// The part of it that whoever walks over the graph relies on: ids are in range, every node has an
// op, every constant data, and every value is made once, before it is read. Names, types and
// attributes are not looked at.
Status check_structure(const Graph& graph);

}  // namespace pyc::ir
