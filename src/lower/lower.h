#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "lower/layout.h"
#include "lower/types.h"

namespace pyc::lower {

struct LowerOptions {
  bool fuse = true;                   // off: one group per node
  LayoutFacts layout_facts = {};      // none known: all row-major
  LayoutChooser layout_chooser = {};  // in place of choose_layouts
  // The device kind whose matrix unit sums products of the types it covers (base/matrix_unit.h);
  // "": all sums are canonical.
  std::string unit = {};
  // Values that are neither read through nor joined to a group, though they could be; empty: none.
  std::function<bool(const ir::Graph& graph, ir::ValueId value)> keep_apart = {};
  // Group::buffer_offsets; off: kernels have the offsets, and every buffer begins with its value.
  bool offsets_in_references = true;
  // Groups and nodes that are alike but for their values are looked at and built once (alike.h,
  // probe.h); off: each by itself.
  bool build_alike_once = true;
  // Called for every group that is built and not made of another one.
  std::function<void(const Group&)> observer = {};
};

// Divides a canonical graph (only ops with a `lower`) into groups, each with its generic Loop IR
// kernel. Neither which nodes share a group nor how values lie in memory changes bits; the unit
// does, for what its row covers. Every kernel passed verify_kernel.
Result<LoweredGraph> lower_graph(const ir::VerifiedGraph& graph, const LowerOptions& options);

// The groups as text: members, buffers and the reason of each fusion.
std::string print_groups(const LoweredGraph& lowered);

}  // namespace pyc::lower
