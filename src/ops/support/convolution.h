#pragma once

// What convolutions share: x (N, C, planes) with weights w (out channels, C / group, kernel).

#include "ops/support/window.h"

namespace pyc::ops {

// Attributes of a window, and group.
std::vector<ir::AttrDef> conv_attrs();
// Checks ranks, channels, groups and the window of inputs x and w; gives the output's shape.
Result<Shape> conv_shape(const InferArgs& args);
Status check_group(int64_t group, const TensorType& x, int64_t in_channels, const TensorType& w,
                   int64_t out_channels);
Status check_bias(const TensorType& x, const TensorType& bias, int64_t channels);

// The window that the shape of the weights gives.
Window conv_window(const LowerContext& context);

// The first input channel of the group that `channel` belongs to: each group has `out` of the
// output's channels and `in` of the input's.
Expr first_channel(LowerContext& context, Expr channel, int64_t group, int64_t out, int64_t in);

// From so many channels of a group on, a matrix unit begins each tap with a block of its own.
inline constexpr int64_t kUnitChannels = 16;

// The contraction over the window's taps and the group's input channels, in (taps, channel) order.
// `term` gets the tap, then the channel of x, and the index into w.
struct ConvStep {
  std::span<const Expr> k;  // the tap in the kernel
  Expr channel;             // of x
  Index w;
  Expr is_channel = {};  // if valid, where it does not hold there is no such channel
};
Expr sum_conv(LowerContext& context, const Window& window, std::span<const Expr> index,
              const std::function<ReduceTerm(const ConvStep&)>& term);

// `sum`, plus input `bias` at the channel if there is such an input, rounded to the output's dtype.
Expr finish_conv(LowerContext& context, Expr sum, int bias, Expr channel);

}  // namespace pyc::ops
