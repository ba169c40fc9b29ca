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

// The elements of one dim whose place is a certain number modulo the stride: the taps that meet
// them, and what of the places these taps read. Tap k of place q meets element q·stride +
// k·dilation - begin.
struct Phase {
  int64_t first = 0;     // tap
  int64_t step = 1;      // from tap to tap
  int64_t taps = 0;      // how many; 0: no place meets these elements
  int64_t dilation = 1;  // from tap to tap in the places
  int64_t before = 0;    // zeros in front of the places
  int64_t behind = 0;
};

// Elements offset, offset + stride, …, `count` of them.
Phase phase_of(const Window& window, size_t d, int64_t offset, int64_t count, int64_t places);
// More phases than this are left to conv_transpose.
inline constexpr int64_t kMostPhases = 16;

// A value moved: reshaped to `apart`, its dims put into `order`, reshaped to `whole`.
struct Move {
  Shape apart;
  Ints order;
  Shape whole;
};

// Weights [groups·a, b, kernel] as [groups·b, a, kernel].
Move turned_weights(const Shape& weights, int64_t group);
// [N, C, phases, counts] as [N, C, counts·strides]: element i·stride + p of a dim is element i of
// phase p.
Move interleaved_phases(int64_t batch, int64_t channels, const Window& window, const Ints& counts);

// For each element of input 0 (NC, planes) the sum of `v`, one value per place of the window, over
// the places whose window has it.
ValueId sum_over_windows(Backward& b, ValueId v, const Window& window);

}  // namespace pyc::ops
