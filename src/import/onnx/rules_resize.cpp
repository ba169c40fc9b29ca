#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

using Floats = std::vector<double>;

// What sizes or scales given for some axes mean for all of them.
struct Target {
  Ints sizes;
  Floats scales;
};

Target from_scales(CloseContext& c, const Shape& from, const Ints& axes, const Floats& scales) {
  Target t{from, Floats(from.size(), 1.0)};
  for (size_t i = 0; i < axes.size() && i < scales.size() && c.ok(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    if (!(scales[i] > 0) || scales[i] > 1e9) {
      c.refuse(Code::kInvalidArgument, fmt::format("scale {} is out of range", scales[i]));
      return t;
    }
    // The scale is an f32; the size is that of the exact product.
    t.scales[a] = scales[i];
    t.sizes[a] = int_of(c, std::floor(static_cast<double>(from[a]) * scales[i]));
  }
  return t;
}

// Sizes are kept or, by the policy, replaced by those of one common scale.
Target from_sizes(CloseContext& c, const Shape& from, const Ints& axes, Ints sizes) {
  Target t{from, Floats(from.size(), 1.0)};
  const std::string policy = c.attr_string("keep_aspect_ratio_policy", "stretch");
  const auto ratio = [&](size_t i) {
    const int64_t dim = from[static_cast<size_t>(axes[i])];
    return dim == 0 ? 1.0 : static_cast<double>(sizes[i]) / static_cast<double>(dim);
  };
  double common = 0.0;
  if (policy != "stretch") {
    for (size_t i = 0; i < axes.size(); ++i) {
      const double r = ratio(i);
      const bool better = policy == "not_larger" ? r < common : r > common;
      if (i == 0 || better) common = r;
    }
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    t.scales[a] = policy == "stretch" ? ratio(i) : common;
    t.sizes[a] = policy == "stretch"
                     ? sizes[i]
                     : int_of(c, std::floor(common * static_cast<double>(from[a]) + 0.5));
  }
  return t;
}

Ints resize_axes(CloseContext& c, int64_t rank) {
  Ints axes = c.attr_ints("axes");
  for (int64_t& a : axes) a = axis_of(c, a, rank);
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

Status build(CloseContext& c, const Target& t, Attrs attrs) {
  attrs["sizes"] = t.sizes;
  attrs["scales"] = t.scales;
  return c.give(c.op("resize", {c.input(0)}, std::move(attrs)));
}

// Opset 10 knew scales only, and coordinates without an offset.
Status resize_10(CloseContext& c) {
  const Shape from = c.shape(c.input(0));
  const Floats scales = c.floats(c.input(1));
  if (!c.ok()) return c.status();
  const Target t = from_scales(c, from, resize_axes(c, c.rank(c.input(0))), scales);
  return build(c, t,
               {{"mode", c.attr_string("mode", "nearest")},
                {"coordinates", std::string("asymmetric")},
                {"nearest", std::string("floor")}});
}

Status resize(CloseContext& c) {
  const Shape from = c.shape(c.input(0));
  const Ints axes = resize_axes(c, c.rank(c.input(0)));
  const bool by_size = c.has(3) && c.type(c.input(3)).elements() > 0;
  if (!by_size && !c.has(2)) {
    return c.refused(Code::kInvalidArgument, "neither scales nor sizes are given");
  }
  const Floats scales = by_size ? Floats{} : c.floats(c.input(2));
  const Ints sizes = by_size ? c.ints(c.input(3)) : Ints{};
  if (!c.ok()) return c.status();
  if ((by_size ? sizes.size() : scales.size()) != axes.size()) {
    return c.refused(Code::kSizeMismatch, "scales or sizes need a number for each axis");
  }
  const Target t = by_size ? from_sizes(c, from, axes, sizes) : from_scales(c, from, axes, scales);
  const std::string coordinates = c.attr_string("coordinate_transformation_mode", "half_pixel");
  Attrs attrs{{"mode", c.attr_string("mode", "nearest")},
              {"coordinates", coordinates},
              {"nearest", c.attr_string("nearest_mode", "round_prefer_floor")},
              {"cubic_coeff_a", c.attr_float("cubic_coeff_a", -0.75)},
              {"exclude_outside", c.attr_int("exclude_outside", 0) != 0},
              {"antialias", c.attr_int("antialias", 0) != 0},
              {"extrapolation_value", c.attr_float("extrapolation_value", 0.0)}};
  if (coordinates == "tf_crop_and_resize") {
    const Floats given = c.floats(c.input(1));
    if (!c.ok()) return c.status();
    if (given.size() != 2 * axes.size()) {
      return c.refused(Code::kSizeMismatch, "roi needs two numbers for each axis");
    }
    Floats roi(2 * from.size(), 0.0);
    std::fill(roi.begin() + static_cast<int64_t>(from.size()), roi.end(), 1.0);
    for (size_t i = 0; i < axes.size(); ++i) {
      roi[static_cast<size_t>(axes[i])] = given[i];
      roi[from.size() + static_cast<size_t>(axes[i])] = given[axes.size() + i];
    }
    attrs["roi"] = roi;
  }
  return build(c, t, std::move(attrs));
}

Status upsample(CloseContext& c) {
  const Shape from = c.shape(c.input(0));
  const Floats scales = c.version() < 9 ? c.attr_floats("scales") : c.floats(c.input(1));
  if (!c.ok()) return c.status();
  const Target t = from_scales(c, from, resize_axes(c, c.rank(c.input(0))), scales);
  return build(c, t,
               {{"mode", c.attr_string("mode", "nearest")},
                {"coordinates", std::string("asymmetric")},
                {"nearest", std::string("floor")}});
}

constexpr Rule kResizeRules[] = {
    {"Resize", resize_10, nullptr, 10},
    {"Resize", resize, nullptr, 11},
    {"Upsample", upsample},
};

}  // namespace

Rules resize_rules() { return kResizeRules; }

}  // namespace pyc::onnx
