#include "ops/support/window_gradient.h"

namespace pyc::ops {

ValueId conv_weight_gradient(Backward& b, ValueId x, ValueId g, const Window& window,
                             int64_t group) {
  const Shape shape = b.type(x).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t channels = shape[1] / group;
  // The batch is what is summed: x as [I/group, group·N, planes], g as weights [O, N, places]. Its
  // places lie a stride apart and move by the dilation from tap to tap.
  Shape split{shape[0], group, channels};
  split.insert(split.end(), shape.begin() + 2, shape.end());
  Ints order{2, 1, 0};
  for (int64_t d : int_range(3, rank + 1)) order.push_back(d);
  const ValueId turned = b.transpose(b.reshape(x, split), order);
  const ValueId signal =
      b.reshape(turned, with_planes(channels, group * shape[0], planes_of(b.type(x))));
  Ints swapped{1, 0};
  for (int64_t d : int_range(2, rank)) swapped.push_back(d);
  Ints pads = window.begin;
  pads.insert(pads.end(), window.end.begin(), window.end.end());
  ValueId taps = b.op("conv", {signal, b.transpose(g, swapped)},
                      {{"strides", window.dilations},
                       {"dilations", window.strides},
                       {"pads", pads},
                       {"group", group}});
  // What is left of the input behind the last place makes more taps than there are.
  for (size_t d = 0; d < window.dims(); ++d) {
    taps = b.slice(taps, static_cast<int64_t>(d) + 2, 0, window.kernel[d]);
  }
  return b.transpose(taps, swapped);
}

ValueId sum_over_windows(Backward& b, ValueId v, const Window& window) {
  const TensorType x = b.input_type(0);
  const Shape places = planes_of(b.type(v));
  const ValueId each = b.reshape(v, with_planes(x.shape[0] * x.shape[1], 1, places));
  const ValueId ones = b.expand(b.scalar_like(v, 1.0), with_planes(1, 1, window.kernel));
  const ValueId sums = b.op("conv_transpose", {each, ones},
                            {{"output_shape", planes_of(x)},
                             {"strides", window.strides},
                             {"pads", window.begin},
                             {"dilations", window.dilations}});
  return b.reshape(sums, x.shape);
}

}  // namespace pyc::ops
