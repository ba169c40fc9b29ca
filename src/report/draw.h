#pragma once

#include "ir/graph.h"
#include "report/data.h"

namespace pyc::report {

// Values and nodes of a graph, without a drawing. Texts are `shown`.
GraphPart rows_of(const ir::Graph& graph);

// Draws every input, node and output of the graph as a box; constants are not drawn.
void draw_nodes(GraphPart& part, const ir::Graph& graph);

// The same with the members of each group inside of the group's box. A node that several groups
// compute is drawn in each, one that no group computes by itself.
void draw_groups(GraphPart& part, const ir::Graph& graph, const std::vector<GroupRow>& groups);

}  // namespace pyc::report
