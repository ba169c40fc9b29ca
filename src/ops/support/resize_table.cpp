#include "ops/support/resize_table.h"

#include <algorithm>
#include <cmath>

namespace pyc::ops {
namespace {

// The place in the input of element `o` of the output.
double source_of(std::string_view coordinates, const ResizeDim& dim, double o) {
  const auto in = static_cast<double>(dim.in);
  const double out = dim.scale * in;  // before it was made an integer
  if (coordinates == "asymmetric") return o / dim.scale;
  if (coordinates == "align_corners") return out == 1.0 ? 0.0 : o * (in - 1) / (out - 1);
  if (coordinates == "tf_crop_and_resize") {
    const double span = (dim.roi_end - dim.roi_begin) * (in - 1);
    const double from_begin = out == 1.0 ? span / 2 : o * span / (out - 1);
    return from_begin + dim.roi_begin * (in - 1);
  }
  const double half_pixel = (o + 0.5) / dim.scale - 0.5;
  if (coordinates == "pytorch_half_pixel") return out == 1.0 ? -0.5 : half_pixel;
  if (coordinates == "half_pixel_symmetric") {
    return in / 2 * (1 - static_cast<double>(dim.out) / out) + half_pixel;
  }
  return half_pixel;
}

double nearest_of(std::string_view mode, double x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  const double below = std::floor(x);
  const double rest = x - below;
  const bool up = mode == "round_prefer_ceil" ? rest >= 0.5 : rest > 0.5;
  return up ? below + 1 : below;
}

// The cubic convolution kernel with parameter `a` at distance x.
double cubic(double a, double x) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

double kernel_at(const ResizeRule& rule, double x) {
  return rule.mode == "cubic" ? cubic(rule.cubic_a, x) : std::max(1 - std::fabs(x), 0.0);
}

// Weights of the taps first, first + 1, …
std::vector<double> weights_of(const ResizeRule& rule, const ResizeDim& dim, double x,
                               int64_t first, int64_t taps, double shrink) {
  std::vector<double> weights;
  for (int64_t t = 0; t < taps; ++t) {
    weights.push_back(kernel_at(rule, (static_cast<double>(first + t) - x) * shrink));
    const bool outside = first + t < 0 || first + t >= dim.in;
    if (rule.exclude_outside && outside) weights.back() = 0;
  }
  if (!rule.exclude_outside && !rule.antialias) return weights;
  double sum = 0;
  for (double w : weights) sum += w;
  for (double& w : weights) w = sum == 0 ? 0 : w / sum;
  return weights;
}

int64_t clamped(double x, int64_t in) {
  return static_cast<int64_t>(std::clamp(x, 0.0, static_cast<double>(in - 1)));
}

}  // namespace

ResizeTable resize_table(const ResizeRule& rule, const ResizeDim& dim) {
  // Antialiasing widens the kernel when the result is smaller.
  const double shrink = rule.antialias ? std::min(dim.scale, 1.0) : 1.0;
  const double reach = rule.mode == "cubic" ? 2 : 1;
  const auto half = static_cast<int64_t>(-std::floor(-reach / shrink));
  ResizeTable table;
  table.taps = rule.mode == "nearest" ? 1 : 2 * half;
  const auto last = static_cast<double>(dim.in - 1);
  for (int64_t o = 0; o < dim.out; ++o) {
    const double x = source_of(rule.coordinates, dim, static_cast<double>(o));
    table.outside.push_back(rule.coordinates == "tf_crop_and_resize" && (x < 0 || x > last));
    if (rule.mode == "nearest") {
      table.indices.push_back(clamped(nearest_of(rule.nearest, x), dim.in));
      continue;
    }
    // A whole x has as many taps in front of it, itself counted, as behind it.
    const auto first = static_cast<int64_t>(std::ceil(x)) - half;
    for (double w : weights_of(rule, dim, x, first, table.taps, shrink)) table.weights.push_back(w);
    for (int64_t t = 0; t < table.taps; ++t) {
      table.indices.push_back(clamped(static_cast<double>(first + t), dim.in));
    }
  }
  return table;
}

}  // namespace pyc::ops
