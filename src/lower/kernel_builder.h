#pragma once

// From a group to its generic Loop IR kernel. Private to lower/.

#include <functional>
#include <string>

#include "lower/groups.h"

namespace pyc::lower {

// What is to be known of a group that was built, beside the group.
struct BuildNotes {
  std::string why_not;         // why its kernel is no matrix product
  bool read_contents = false;  // it would be another one if its larger constants held other numbers
};

// Builds the kernel of one group: fills in kernel, buffer_values, faults and flops, and the matrix
// product that the kernel computes, if it is one. Whatever it reads of the graph and the grouping
// is compared by alike.cpp or noted.
Group build_group(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan,
                  BuildNotes* notes);

// The same for a group that is one node with a kernel of its own (kKernel).
Group build_whole_kernel(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan);

// The matrix product the kernel computes, if it is one in the sense of types.h, or the reason why
// it is none. `is_finite`: the buffer holds a constant without infinities and NaN.
using FiniteTest = std::function<bool(uint32_t buffer)>;
std::optional<Contraction> find_contraction(const loop::Kernel& kernel, const FiniteTest& is_finite,
                                            std::string* why_not);

}  // namespace pyc::lower
