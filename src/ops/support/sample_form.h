#pragma once

// Values between the elements of planes, out of other ops: for gradients. Which elements are read
// is decided by integers, through which none pass.

#include "ops/support/compose.h"
#include "ops/support/infer.h"

namespace pyc::ops {

// What places take from one dim: the element (i64), its weight, and whether there is such an
// element; all of one shape [images, places]. `inside` may be kNoId.
struct PlacedTap {
  ValueId at;
  ValueId weight;
  ValueId inside = ir::kNoId;
};
using PlacedTaps = std::vector<PlacedTap>;

// The whole number in a float, as i64, and that number as a float that carries no gradient.
ValueId whole(Compose& c, ValueId x, std::string_view rounding);
ValueId as_float(Compose& c, ValueId i, ValueId like);

ValueId is_between(Compose& c, ValueId i, double lo, double hi);  // lo <= i < hi
ValueId clamped(Compose& c, ValueId i, double lo, double hi);     // both included

// The two neighbours of x in a dim of `size`, those outside marked.
PlacedTaps linear_taps(Compose& c, ValueId x, int64_t size);

// x [images, channels, planes…] at places: [images, channels, places].
ValueId interpolate(Compose& c, ValueId x, const std::vector<PlacedTaps>& dims);

}  // namespace pyc::ops
