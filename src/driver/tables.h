#pragma once

// What PyC has, for those that may not look into the stages: ops, passes, and what each device
// computes.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace pyc::driver {

const ir::OpSet& known_ops();

struct PassInfo {
  std::string_view name;
  bool value_changing;
};
// In the order of the pipeline.
std::vector<PassInfo> known_passes();
// Verifies the graph and runs the named passes in the given order, or all of them when there are no
// names; every result is verified. kUnknownOption, with a suggestion, for an unknown name.
Result<ir::Graph> run_passes(ir::Graph graph, std::span<const std::string> names);

// A graph of one node of the op that the op's type rule takes with `dtype` as its main element
// type, found by trying small shapes and attributes; kUnsupported when there is none.
Result<ir::Graph> example_graph(const ir::OpDef& op, DType dtype);

// Bit 1 << dtype for every dtype the device computes the op for: there is an example, and it
// compiles up to its plan.
Result<uint64_t> device_dtypes(const std::string& device, const ir::OpDef& op);

}  // namespace pyc::driver
