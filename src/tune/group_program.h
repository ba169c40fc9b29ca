#pragma once

#include <memory>
#include <vector>

#include "backends/backend.h"
#include "base/status.h"
#include "lower/types.h"
#include "runtime/program.h"

namespace pyc::tune {

// What a group reads that is no constant, and what it writes, each value once.
struct GroupValues {
  std::vector<ir::ValueId> inputs;
  std::vector<ir::ValueId> outputs;
};
GroupValues values_of(const ir::Graph& graph, const lower::Group& group);

// The group alone as a program whose inputs and outputs are values_of, computed by the candidate.
Result<std::shared_ptr<const runtime::Program>> group_program(
    const lower::LoweredGraph& lowered, size_t g, const backends::Candidate& candidate,
    const backends::Backend& backend, const backends::BackendOptions& options);

}  // namespace pyc::tune
