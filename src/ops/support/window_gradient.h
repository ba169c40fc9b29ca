#pragma once

// What the gradient rules of convolutions and pools share.

#include "ops/support/backward.h"
#include "ops/support/window.h"

namespace pyc::ops {

// The gradient of the weights [O, I/group, kernel] of a convolution of x [N, I, planes] by a
// window, g [N, O, places] being what arrives. Sums in the order of conv.
ValueId conv_weight_gradient(Backward& b, ValueId x, ValueId g, const Window& window,
                             int64_t group);

// For each element of input 0 (NC, planes) the sum of `v`, one value per place of the window, over
// the places whose window has it.
ValueId sum_over_windows(Backward& b, ValueId v, const Window& window);

}  // namespace pyc::ops
