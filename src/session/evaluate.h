#pragma once

#include <vector>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "ir/graph.h"

namespace pyc::session {

// Computes a graph without inputs with the interpreter: the bytes of its outputs.
Result<std::vector<SharedBytes>> evaluate(ir::Graph graph);

}  // namespace pyc::session
