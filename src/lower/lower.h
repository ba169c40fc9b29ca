#pragma once

#include "base/status.h"
#include "lower/types.h"

namespace pyc::lower {

struct LowerOptions {
  bool fuse = true;  // off: one group per node
};

// Divides a canonical graph (only ops with a `lower`) into groups, each with its generic Loop IR
// kernel. Which nodes share a group never changes bits. Every kernel passed verify_kernel.
Result<LoweredGraph> lower_graph(const ir::VerifiedGraph& graph, const LowerOptions& options);

// The groups as text: members, buffers and the reason of each fusion.
std::string print_groups(const LoweredGraph& lowered);

}  // namespace pyc::lower
