#pragma once

// What the gradient rules of convolutions and pools share.

#include "ops/support/backward.h"
#include "ops/support/window.h"

namespace pyc::ops {

// Rules of convolutions are written with `pad`, so that what they sum has no terms to skip and is a
// product of matrices whatever the factors are.

// The convolution of x [N, I, planes] with w [O, I/group, kernel], zeros around x.
ValueId padded_conv(Backward& b, ValueId x, ValueId w, const Window& window, int64_t group);

// The gradient of x [N, I, planes] in a convolution with w [O, I/group, kernel], g [N, O, places]
// being what arrives: for strides of 1 a convolution of g with w reversed and turned; else one for
// each place modulo the strides, interleaved. Sums in the order of conv.
ValueId conv_input_gradient(Backward& b, ValueId g, ValueId w, const Window& window, int64_t group,
                            const Shape& planes);

// The gradient of the weights [O, I/group, kernel] of a convolution of x [N, I, planes] by a
// window, g [N, O, places] being what arrives: a contraction over batch and places in row-major
// order.
ValueId conv_weight_gradient(Backward& b, ValueId x, ValueId g, const Window& window,
                             int64_t group);

// For each element of input 0 (NC, planes) the sum of `v`, one value per place of the window, over
// the places whose window has it.
ValueId sum_over_windows(Backward& b, ValueId v, const Window& window);

}  // namespace pyc::ops
