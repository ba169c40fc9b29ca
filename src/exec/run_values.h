#pragma once

// Programs run on values instead of views.

#include <span>
#include <vector>

#include "base/dyn_value.h"
#include "base/status.h"
#include "runtime/model.h"

namespace pyc::exec {

// Runs the model into new memory. `measured` is added to.
Result<std::vector<DynValue>> run_values(runtime::Model& model,
                                         std::span<const DynValue* const> inputs,
                                         runtime::RunStats& measured);

}  // namespace pyc::exec
