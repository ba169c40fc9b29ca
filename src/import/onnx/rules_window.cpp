#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

// A sliding window as ONNX writes it, with the padding made explicit.
struct Window {
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints pads;   // begins, then ends
  Ints extra;  // per dim: what ceil_mode adds to the end
  size_t dims() const { return kernel.size(); }
  int64_t reach(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  Ints padded() const {
    Ints all = pads;
    for (size_t d = 0; d < dims(); ++d) all[dims() + d] += extra[d];
    return all;
  }
};

Shape planes_of(const Shape& shape) {
  return shape.size() < 2 ? Shape{} : Shape(shape.begin() + 2, shape.end());
}

// Numbers that products of two of them do not overflow; refused, and all `fallback`, if they are
// not.
void bounded(CloseContext& c, Ints& list, std::string_view what, int64_t fallback) {
  for (const int64_t v : list) {
    if (v >= 0 && v <= (int64_t{1} << 30)) continue;
    c.refuse(Code::kInvalidArgument, fmt::format("{} has {}", what, v));
    list.assign(list.size(), fallback);
    return;
  }
}

Ints list_attr(CloseContext& c, std::string_view name, size_t count, int64_t fallback) {
  Ints list = c.attr_ints(name);
  if (list.empty()) list.assign(count, fallback);
  if (list.size() != count) {
    c.refuse(Code::kSizeMismatch,
             fmt::format("attribute '{}' needs {} numbers, found {}", name, count, list.size()));
    list.assign(count, fallback);
  }
  bounded(c, list, fmt::format("attribute '{}'", name), fallback);
  return list;
}

// The pads that auto_pad=SAME_* asks for: as many windows as the stride makes of the input.
void pad_same(Window& w, const Shape& planes, bool upper) {
  for (size_t d = 0; d < w.dims(); ++d) {
    const int64_t stride = std::max<int64_t>(w.strides[d], 1);
    const int64_t count = (planes[d] + stride - 1) / stride;
    const int64_t total = std::max<int64_t>(0, (count - 1) * stride + w.reach(d) - planes[d]);
    w.pads[d] = upper ? total / 2 : total - total / 2;
    w.pads[w.dims() + d] = total - w.pads[d];
  }
}

// Windows that run over the end count too, unless they start there.
void round_up(Window& w, const Shape& planes) {
  for (size_t d = 0; d < w.dims(); ++d) {
    const int64_t stride = std::max<int64_t>(w.strides[d], 1);
    const int64_t whole = planes[d] + w.pads[d] + w.pads[w.dims() + d];
    int64_t count = (std::max<int64_t>(whole - w.reach(d), 0) + stride - 1) / stride + 1;
    if ((count - 1) * stride >= planes[d] + w.pads[d]) --count;
    w.extra[d] = std::max<int64_t>(0, (count - 1) * stride + w.reach(d) - whole);
  }
}

Window window_of(CloseContext& c, Ints kernel, Shape planes) {
  Window w;
  bounded(c, planes, "the input", 1);
  bounded(c, kernel, "the window", 1);
  const size_t dims = planes.size();
  if (c.ok() && kernel.size() != dims) {
    c.refuse(Code::kRankMismatch,
             fmt::format("a window of {} dims on an input of {}", kernel.size(), dims));
  }
  kernel.resize(dims, 1);
  w.kernel = std::move(kernel);
  w.strides = list_attr(c, "strides", dims, 1);
  w.dilations = list_attr(c, "dilations", dims, 1);
  w.extra.assign(dims, 0);
  const std::string mode = c.attr_string("auto_pad", "NOTSET");
  if (mode == "NOTSET") {
    w.pads = list_attr(c, "pads", 2 * dims, 0);
  } else {
    w.pads.assign(2 * dims, 0);
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      pad_same(w, planes, mode == "SAME_UPPER");
    } else if (mode != "VALID") {
      c.refuse(Code::kInvalidArgument, fmt::format("auto_pad '{}' is not known", mode));
    }
  }
  if (c.attr_int("ceil_mode", 0) != 0) round_up(w, planes);
  return w;
}

Window pool_window(CloseContext& c) {
  return window_of(c, c.attr_ints("kernel_shape"), planes_of(c.shape(c.input(0))));
}

Attrs pool_attrs(const Window& w) {
  return {{"kernel", w.kernel},
          {"strides", w.strides},
          {"pads", w.padded()},
          {"dilations", w.dilations}};
}

Attrs conv_attrs(CloseContext& c, const Window& w) {
  return {{"strides", w.strides},
          {"pads", w.padded()},
          {"dilations", w.dilations},
          {"group", c.attr_int("group", 1)}};
}

// The window of weights of this shape, which kernel_shape may say once more.
Shape kernel_of(CloseContext& c, size_t weights) {
  Shape kernel = planes_of(c.shape(c.input(weights)));
  const Ints said = c.attr_ints("kernel_shape", kernel);
  if (c.ok() && said != kernel) {
    c.refuse(Code::kShapeMismatch,
             fmt::format("attribute 'kernel_shape' is {}, the weights have a window of {}",
                         ir::shape_to_string(said), ir::shape_to_string(kernel)));
  }
  return kernel;
}

Window conv_window(CloseContext& c, size_t weights) {
  return window_of(c, kernel_of(c, weights), planes_of(c.shape(c.input(0))));
}

Status conv(CloseContext& c) {
  return c.give(c.op("conv", c.all_inputs(), conv_attrs(c, conv_window(c, 1))));
}

Status conv_integer(CloseContext& c) {
  std::vector<ValueId> in{c.input(0), c.input(1)};
  if (c.has(2) || c.has(3)) {
    in.push_back(c.has(2) ? c.reshape(c.input(2), {}) : c.scalar_like(in[0], 0));
  }
  if (c.has(3)) in.push_back(c.input(3));
  return c.give(c.op("conv_integer", in, conv_attrs(c, conv_window(c, 1))));
}

// y = quantize(conv of the integers · (x_scale · w_scale)), the bias being an i32 of that scale.
Status qlinear_conv(CloseContext& c) {
  const ValueId x = c.input(0);
  const ValueId w = c.input(3);
  const auto rank = static_cast<size_t>(c.rank(x));
  const ValueId sum = c.op("conv_integer", {x, w, c.reshape(c.input(2), {}), c.input(5)},
                           conv_attrs(c, conv_window(c, 3)));
  // Numbers per output channel stand along dim 1.
  const auto per_channel = [&](ValueId v) {
    if (c.type(v).elements() == 1) return c.reshape(v, {});
    Shape s(rank - 1, 1);
    s[0] = c.type(v).elements();
    return c.reshape(v, s);
  };
  const ValueId biased = c.has(8) ? c.op("add", {sum, per_channel(c.input(8))}) : sum;
  const ValueId scale = c.op("mul", {c.reshape(c.input(1), {}), per_channel(c.input(4))});
  const ValueId real = c.op("mul", {c.cast(biased, DType::kF32), scale});
  return c.give(c.op("quantize", {real, c.reshape(c.input(6), {}), c.reshape(c.input(7), {})},
                     {{"to", c.dtype(c.input(7))}}));
}

Status conv_transpose(CloseContext& c) {
  Shape planes = planes_of(c.shape(c.input(0)));
  bounded(c, planes, "the input", 1);
  const size_t dims = planes.size();
  Window w;
  w.kernel = kernel_of(c, 1);
  bounded(c, w.kernel, "the window", 1);
  if (!c.ok()) return c.status();
  if (w.kernel.size() != dims) return c.refused(Code::kRankMismatch, "x and w differ in rank");
  w.strides = list_attr(c, "strides", dims, 1);
  w.dilations = list_attr(c, "dilations", dims, 1);
  const Ints more = list_attr(c, "output_padding", dims, 0);
  const std::string mode = c.attr_string("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  Ints out = c.attr_ints("output_shape");
  if (out.size() == dims + 2) out.erase(out.begin(), out.begin() + 2);
  bounded(c, out, "attribute 'output_shape'", 0);
  w.pads = same || !out.empty() ? Ints(2 * dims, 0) : list_attr(c, "pads", 2 * dims, 0);
  const bool given = !out.empty();
  out.resize(dims);
  for (size_t d = 0; d < dims; ++d) {
    const int64_t full = w.strides[d] * (planes[d] - 1) + more[d] + w.reach(d);
    if (!given && !same) {
      out[d] = full - w.pads[d] - w.pads[dims + d];
      continue;
    }
    if (!given) out[d] = planes[d] * w.strides[d];
    const int64_t total = std::max<int64_t>(full - out[d], 0);
    w.pads[d] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.pads[dims + d] = total - w.pads[d];
  }
  return c.give(c.op("conv_transpose", c.all_inputs(),
                     {{"output_shape", out},
                      {"strides", w.strides},
                      {"pads", Ints(w.pads.begin(), w.pads.begin() + static_cast<int64_t>(dims))},
                      {"dilations", w.dilations},
                      {"group", c.attr_int("group", 1)}}));
}

// ONNX has the bias before the mask.
Status deform_conv(CloseContext& c) {
  std::vector<ValueId> in{c.input(0), c.input(1), c.input(2)};
  if (c.has(4)) in.push_back(c.input(4));
  if (c.has(3)) in.push_back(c.input(3));
  Attrs attrs = conv_attrs(c, conv_window(c, 1));
  attrs["offset_group"] = c.attr_int("offset_group", 1);
  return c.give(c.op("deform_conv", in, std::move(attrs)));
}

Status max_pool(CloseContext& c) {
  const Window w = pool_window(c);
  c.set(0, c.op("max_pool", {c.input(0)}, pool_attrs(w)));
  if (c.wants(1)) {
    Attrs attrs = pool_attrs(w);
    attrs["column_major"] = c.attr_int("storage_order", 0) != 0;
    c.set(1, c.op("max_pool_indices", {c.input(0)}, std::move(attrs)));
  }
  return c.status();
}

Status avg_pool(CloseContext& c) {
  const Window w = pool_window(c);
  Attrs attrs = pool_attrs(w);
  if (c.attr_int("count_include_pad", 0) != 0) attrs["counted_pads"] = w.pads;
  return c.give(c.op("avg_pool", {c.input(0)}, std::move(attrs)));
}

Status lp_pool(CloseContext& c) {
  Attrs attrs = pool_attrs(pool_window(c));
  attrs["p"] = c.version() < 2 ? int_of(c, c.attr_float("p", 2.0)) : c.attr_int("p", 2);
  return c.give(c.op("lp_pool", {c.input(0)}, std::move(attrs)));
}

// Before opset 2 p was a float.
Status global_lp_pool(CloseContext& c) {
  return c.give(c.op("global_lp_pool", {c.input(0)}, {{"p", int_of(c, c.attr_float("p", 2.0))}}));
}

// The indices count the elements of the shape that the window gives, whatever output_shape says;
// the result lies at the front of output_shape.
Status max_unpool(CloseContext& c) {
  const Shape s = c.shape(c.input(0));
  const Window w = pool_window(c);
  Shape out = s;
  for (size_t d = 0; d < w.dims() && c.ok(); ++d) {
    out[d + 2] = (s[d + 2] - 1) * w.strides[d] + w.reach(d) - w.pads[d] - w.pads[w.dims() + d];
  }
  ValueId y = c.op("max_unpool", {c.input(0), c.input(1)}, {{"shape", out}});
  if (!c.has(2)) return c.give(y);
  Ints wanted = c.ints(c.input(2));
  bounded(c, wanted, "output_shape", 0);
  if (wanted.size() != out.size()) {
    return c.refused(Code::kShapeMismatch,
                     "output_shape must have one element per dim of the input");
  }
  Ints pads(2 * out.size(), 0);
  for (size_t d = 0; d < out.size(); ++d) pads[out.size() + d] = wanted[d] - out[d];
  return c.give(c.op("pad", {y}, {{"pads", pads}}));
}

Status col2im(CloseContext& c) {
  const Ints image = c.ints(c.input(1));
  const Ints block = c.ints(c.input(2));
  const size_t dims = image.size();
  return c.give(c.op("col2im", {c.input(0)},
                     {{"image_shape", image},
                      {"block_shape", block},
                      {"strides", list_attr(c, "strides", dims, 1)},
                      {"pads", list_attr(c, "pads", 2 * dims, 0)},
                      {"dilations", list_attr(c, "dilations", dims, 1)}}));
}

Status roi_align(CloseContext& c) {
  const std::string mode = c.attr_string("coordinate_transformation_mode",
                                         c.version() < 16 ? "output_half_pixel" : "half_pixel");
  return c.give(c.op("roi_align", {c.input(0), c.input(1), c.input(2)},
                     {{"size", Ints{c.attr_int("output_height", 1), c.attr_int("output_width", 1)}},
                      {"mode", c.attr_string("mode", "avg")},
                      {"sampling_ratio", c.attr_int("sampling_ratio", 0)},
                      {"spatial_scale", c.attr_float("spatial_scale", 1.0)},
                      {"half_pixel", mode == "half_pixel"}}));
}

Status grid_sample(CloseContext& c) {
  std::string mode = c.attr_string("mode", "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  return c.give(c.op("grid_sample", {c.input(0), c.input(1)},
                     {{"mode", mode},
                      {"padding", c.attr_string("padding_mode", "zeros")},
                      {"align_corners", c.attr_int("align_corners", 0) != 0}}));
}

Status affine_grid(CloseContext& c) {
  return c.give(
      c.op("affine_grid", {c.input(0)},
           {{"size", c.ints(c.input(1))}, {"align_corners", c.attr_int("align_corners", 0) != 0}}));
}

constexpr Rule kWindowRules[] = {
    {"AffineGrid", affine_grid},
    {"AveragePool", avg_pool},
    {"Col2Im", col2im},
    {"Conv", conv},
    {"ConvInteger", conv_integer},
    {"ConvTranspose", conv_transpose},
    {"DeformConv", deform_conv},
    {"GlobalLpPool", global_lp_pool},
    {"GridSample", grid_sample},
    {"LpPool", lp_pool},
    {"MaxPool", max_pool},
    {"MaxUnpool", max_unpool},
    {"QLinearConv", qlinear_conv},
    {"RoiAlign", roi_align},
};

}  // namespace

Rules window_rules() { return kWindowRules; }

}  // namespace pyc::onnx
