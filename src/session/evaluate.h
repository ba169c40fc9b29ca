#pragma once

#include <vector>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "ir/graph.h"
#include "open/segment.h"

namespace pyc::session {

// Computes a graph without inputs with the interpreter: the bytes of its outputs.
Result<std::vector<SharedBytes>> evaluate(ir::Graph graph);

// The same, and small results are kept: closing a model for another size asks again for all that
// follows from no size. Any number of threads may call it at a time.
open::Evaluate keeping_evaluate();

}  // namespace pyc::session
