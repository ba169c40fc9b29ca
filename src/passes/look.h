#pragma once

// What the passes that match patterns ask of a graph.

#include <optional>
#include <vector>

#include "ir/patch.h"
#include "passes/passes.h"

namespace pyc::passes {

// By value of the graph: how often nodes and the model's outputs read it.
std::vector<int> count_readers(const ir::Graph& graph);

// `v`, or what it is a copy of: through identity, and casts and reshapes that change nothing.
ir::ValueId behind_copies(const ir::Patch& patch, ir::ValueId v);

// The number every element of a constant equals, or none.
std::optional<double> constant_number(const ir::Patch& patch, ir::ValueId v);

// Replaces the node by what its op's `simplify` gives and counts the rule; gives whether there was
// one. kInternal for a rule that does not say its name (Patch::by): nothing would prove it.
Result<bool> apply_rules(ir::Patch& patch, const ir::NodeView& node, const PassContext& context);

}  // namespace pyc::passes
