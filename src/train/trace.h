#pragma once

#include <span>
#include <string>

#include "driver/compile_options.h"
#include "ir/graph.h"
#include "runtime/tensor_view.h"

namespace pyc::train {

// Which node made a value that is not finite: runs the canonical graph once more with these inputs,
// every value beside a flag that says what is in it, and walks back from the first output that is
// not finite to a node whose inputs are. "" when all is finite or the graph cannot be run so.
std::string trace_not_finite(const ir::VerifiedGraph& graph,
                             std::span<const runtime::TensorView> inputs,
                             const driver::CompileOptions& options);

}  // namespace pyc::train
