#pragma once

#include <memory>
#include <span>

#include "backends/backend.h"
#include "base/status.h"
#include "plan/types.h"
#include "runtime/model.h"
#include "runtime/program.h"

namespace pyc::driver {

// Joins the plan's offsets with the backend's compiled steps into a Program that runs at `place`.
// Input and output names are those of `io`, the graph the user gave.
Result<std::shared_ptr<const runtime::Program>> assemble(
    const ir::Graph& io, const lower::LoweredGraph& lowered, const plan::ExecutionPlan& plan,
    std::span<const backends::CompiledGroup> groups, runtime::Place place);

// The runtime's step of a compiled one, but for the places of its operands.
runtime::Step step_of(const ir::Graph& graph, const lower::Group& group,
                      const backends::CompiledStep& step);

// The plan's account of memory as the runtime reports it.
runtime::MemoryReport memory_report(const plan::ExecutionPlan& plan, int threads);

}  // namespace pyc::driver
