#pragma once

// Compiled models run on values instead of views.

#include <vector>

#include "base/dyn_value.h"
#include "base/status.h"
#include "ir/graph.h"
#include "runtime/model.h"

namespace pyc::driver {

// Runs the model into new memory. `measured` is added to.
Result<std::vector<DynValue>> run_values(runtime::Model& model, std::vector<DynValue> inputs,
                                         runtime::RunStats& measured);

// Computes a graph without inputs with the interpreter: the bytes of its outputs.
Result<std::vector<SharedBytes>> evaluate(ir::Graph graph);

}  // namespace pyc::driver
