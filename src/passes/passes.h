#pragma once

// The passes, one function each, in passes/<name>.cpp. A pass rewrites the graph and says whether
// it changed anything; it never prints, times or verifies (pipeline.cpp does).

#include "base/status.h"
#include "ir/graph.h"

namespace pyc::passes {

// Replaces every node whose op is a composite by the ops it is made of, until none is left.
// Names of replaced values stay with what replaces them. Bits: this is the composite's definition.
Result<bool> decompose(ir::Graph& graph, const ir::OpSet& ops);

// Gives every model output a node result of its own: inputs, constants and values that are an
// output already are copied with `identity`.
Result<bool> isolate_outputs(ir::Graph& graph, const ir::OpSet& ops);

// Removes nodes and constants that no output depends on. Inputs stay.
Result<bool> eliminate_dead(ir::Graph& graph, const ir::OpSet& ops);

}  // namespace pyc::passes
