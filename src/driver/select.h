#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "base/decision.h"
#include "base/status.h"

namespace pyc::driver {

struct Selection {
  std::vector<backends::Candidate> chosen;  // per group
  std::vector<lower::KernelNeeds> needs;    // what it asks for
  DecisionLog decisions;                    // one per group, with all candidates
};

// Picks for every group the applicable candidate of least estimated cost, ties to the earlier one.
// Candidates named in `excluded`, by full name or family (what stands before "__"), are left out;
// so are, unless `any_order`, those whose products have another order than the group's: their bits
// would differ.
// Refuses (kUnsupported) when nothing is left.
Result<Selection> select_kernels(const lower::LoweredGraph& lowered,
                                 const backends::Backend& backend,
                                 const backends::BackendOptions& options,
                                 std::span<const std::string> excluded, bool any_order);

// Chooses for group g another of its decision's alternatives, which is applicable.
void take_candidate(size_t alternative, const lower::LoweredGraph& lowered, size_t g,
                    const backends::Backend& backend, const backends::BackendOptions& options,
                    Selection& selection);

}  // namespace pyc::driver
