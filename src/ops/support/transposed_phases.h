#pragma once

// A transposed convolution by constants as convolutions: output elements whose place is equal
// modulo the strides meet the same taps, in the order of a convolution over the reversed input. So
// each such phase is a convolution, with the same terms in the same order, and a product of
// matrices; as one kernel the taps would change from element to element.

#include "ops/support/simplify.h"
#include "ops/support/window.h"

namespace pyc::ops {

// What replaces the node, conv_transpose by `window` (its `end` is not used), or kNoId: where the
// weights are not constant, elements are no f32, there are too many phases, or one without taps.
ValueId transposed_phases(Patch& patch, const NodeView& node, const Window& window, int64_t group);

}  // namespace pyc::ops
