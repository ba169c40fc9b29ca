#pragma once

// Graphs as files of other formats.

#include <string>

#include "base/status.h"
#include "ir/graph.h"

namespace pyc::model_file {

// Writes the graph as an ONNX model. kUnsupported names every node that ONNX cannot express.
Status export_onnx(const ir::Graph& graph, const std::string& path);

}  // namespace pyc::model_file
