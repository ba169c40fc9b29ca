#pragma once

// Sliding windows over the two last dims of an NCHW tensor: convolutions and pools.
// Attributes: strides [h,w], pads [top,left,bottom,right], dilations [h,w].

#include <array>

#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {

struct Window {
  std::array<int64_t, 2> kernel{};
  std::array<int64_t, 2> strides{1, 1};
  std::array<int64_t, 2> begin{};  // pads in front
  std::array<int64_t, 2> end{};    // and behind
  std::array<int64_t, 2> dilations{1, 1};
};

// Refuses attributes out of range.
Result<Window> make_window(const Ints& kernel, const Ints& strides, const Ints& pads,
                           const Ints& dilations);
// The number of places for the window in dims H and W of `x`; refuses when there is none.
Result<std::array<int64_t, 2>> count_windows(const Window& window, const TensorType& x);

// Where a tap of the window at (oh, ow) lies in the input, and whether that is inside of it.
struct Tap {
  Expr h;
  Expr w;
  Expr inside;
};
Tap tap_at(LowerContext& context, const Window& window, Expr oh, Expr ow, Expr kh, Expr kw);
// How many taps of the window at (oh, ow) lie inside the input. Requires dilations of 1.
Expr count_taps(LowerContext& context, const Window& window, Expr oh, Expr ow);

// The window of a convolution whose weights are input 1.
Window conv_window(const LowerContext& context);

// Pools: attributes kernel, strides, pads; each window has at least one tap inside the input.
std::vector<ir::AttrDef> pool_attrs();
Types infer_pool(const InferArgs& args, const DTypeClass& accepted);
Window pool_window(const LowerContext& context);

}  // namespace pyc::ops
