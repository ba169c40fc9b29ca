#pragma once

// What PyC has, for those that may not look into the stages: ops, and what each device computes.
// Passes: tooling/optimize.h.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace pyc::tooling {

const ir::OpSet& known_ops();

// A graph of one node of the op that the op's type rule takes with `dtype` as its main element
// type, found by trying small shapes and attributes; kUnsupported when there is none.
Result<ir::Graph> example_graph(const ir::OpDef& op, DType dtype);

// Bit 1 << dtype for every dtype the device computes the op for: there is an example, and it
// compiles up to its plan.
Result<uint64_t> device_dtypes(const std::string& device, const ir::OpDef& op);

}  // namespace pyc::tooling
