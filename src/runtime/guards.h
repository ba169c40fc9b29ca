#pragma once

#include <optional>
#include <span>

#include "base/status.h"
#include "runtime/program.h"
#include "runtime/tensor_view.h"

namespace pyc::runtime {

// Accepts the caller's tensors for a run of `program`, or refuses them with the codes that
// Model::run lists. The first problem counts: all inputs are looked at before all outputs, and
// overlaps last. `staged` becomes the number of views that kernels cannot take as they are; with
// `strict` such a view is refused. Views in the memory of `device` are taken if they are plain.
// Allocates nothing when all are plain.
Status check_views(const Program& program, std::optional<DeviceId> device,
                   std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                   bool strict, int64_t& staged);

// The same for one state's view, which is read or `written`; its order in memory may be any.
Status check_view_of(const IoSpec& state, const TensorView& view, bool written);

}  // namespace pyc::runtime
