#pragma once

// What losses by class share: x [N,C,d…], target [N,d…], weight [C].

#include <limits>

#include "ops/support/infer.h"

namespace pyc::ops {

// The value of attribute `ignore_index` that no target has.
inline constexpr int64_t kNothingIgnored = std::numeric_limits<int64_t>::min();

Status require_class_targets(const InferArgs& args);
// That attribute `reduction` is none, sum or mean.
Status require_loss_reduction(const InferArgs& args);
Shape loss_shape(const InferArgs& args);

}  // namespace pyc::ops
