#pragma once

#include <span>

#include "base/status.h"
#include "runtime/model.h"

namespace pyc::runtime {

// Accepts the caller's tensors for a run of `program`, or refuses them with the codes that
// Model::run lists. The first problem counts: all inputs are looked at before all outputs, and
// overlaps last. Allocates nothing when it accepts.
Status check_views(const Program& program, std::span<const TensorView> inputs,
                   std::span<const TensorView> outputs);

}  // namespace pyc::runtime
