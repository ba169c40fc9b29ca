#pragma once

// What normalisations share.

#include "ops/support/compose.h"
#include "ops/support/infer.h"

namespace pyc::ops {

// mean = S(x)/n, centred = x - mean, var = S(centred²)/n over axes, which stay with extent 1.
struct Moments {
  ValueId mean;
  ValueId centred;
  ValueId var;
};
Moments moments(Compose& c, ValueId x, const Ints& axes);

// The axes from attribute `axis` on.
Ints axes_from(int64_t axis, int64_t rank);

// Type rule of norms whose inputs 1 … are parameters of shape [C], C the extent of axis 1 of x.
// `names` are those of all inputs.
Types infer_channel_norm(const InferArgs& args, std::span<const std::string_view> names,
                         int64_t min_rank);
// Input i, a parameter per channel, as it broadcasts against x.
ValueId channel_input(Compose& c, size_t i);

}  // namespace pyc::ops
