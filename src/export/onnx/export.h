#pragma once

// Graph IR → ONNX bytes: values keep their names, constants become initializers. Every op has a
// rule (rules.h) or the whole export is refused.

#include <string>

#include "base/status.h"
#include "ir/graph.h"

namespace pyc::onnx {

// The graph must be one that verify_graph accepts. kUnsupported names every node that ONNX cannot
// express, or says that the model is over the 2 GiB an ONNX file may have.
Result<std::string> export_model(const ir::Graph& graph);

}  // namespace pyc::onnx
