#pragma once

// Where the elements of a resized dim come from: computed while compiling, in f64.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pyc::ops {

struct ResizeRule {
  std::string_view mode;         // nearest, linear, cubic
  std::string_view coordinates;  // see kResizeCoordinates
  std::string_view nearest;      // see kNearestModes
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};
inline constexpr std::string_view kResizeModes[] = {"nearest", "linear", "cubic"};
inline constexpr std::string_view kResizeCoordinates[] = {
    "half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
    "align_corners", "asymmetric",           "tf_crop_and_resize"};
inline constexpr std::string_view kNearestModes[] = {"round_prefer_floor", "round_prefer_ceil",
                                                     "floor", "ceil"};

// One dim: from `in` to `out` elements. The scale need not be out / in.
struct ResizeDim {
  int64_t in = 1;
  int64_t out = 1;
  double scale = 1.0;
  double roi_begin = 0.0;
  double roi_end = 1.0;
};

// Element o of the result is the sum over t of weights[o·taps + t] · x[indices[o·taps + t]], or
// the extrapolation value where outside[o]. Mode nearest has one tap and no weights.
struct ResizeTable {
  int64_t taps = 1;
  std::vector<int64_t> indices;  // each within [0, in)
  std::vector<double> weights;
  std::vector<bool> outside;
};
ResizeTable resize_table(const ResizeRule& rule, const ResizeDim& dim);

}  // namespace pyc::ops
