#pragma once

// From a group to its generic Loop IR kernel. Private to lower/.

#include "lower/groups.h"

namespace pyc::lower {

// Builds the kernel of one group: fills in kernel, buffer_values, faults and flops.
Group build_group(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan);

// The same for a group that is one node with a kernel of its own (kKernel).
Group build_whole_kernel(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan);

// The matrix product the kernel computes, if it is one in the sense of types.h, or the reason why
// it is none.
std::optional<Contraction> find_contraction(const loop::Kernel& kernel, std::string* why_not);

}  // namespace pyc::lower
