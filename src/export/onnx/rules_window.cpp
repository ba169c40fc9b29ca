#include <algorithm>
#include <cstdlib>

#include "export/onnx/rules.h"

namespace pyc::onnx::exporting {
namespace {

// ONNX names what is cut from the full result at both ends, and what is added at the last one.
void conv_transpose(Emitter& e) {
  const ir::Shape& x = e.in_type(0).shape;
  const ir::Shape& w = e.in_type(1).shape;
  const size_t dims = x.size() - 2;
  const auto at = [&](const char* name, size_t d, int64_t fallback) {
    return e.ints(name).empty() ? fallback : e.ints(name)[d];
  };
  Ints pads(2 * dims);
  Ints more(dims, 0);
  for (size_t d = 0; d < dims; ++d) {
    const int64_t reach = (w[d + 2] - 1) * at("dilations", d, 1) + 1;
    const int64_t full = at("strides", d, 1) * (x[d + 2] - 1) + reach;
    pads[d] = at("pads", d, 0);
    const int64_t cut = full - pads[d] - e.ints("output_shape")[d];
    pads[dims + d] = std::max<int64_t>(cut, 0);
    more[d] = std::max<int64_t>(-cut, 0);
  }
  NodeAttrs attrs = e.attrs("strides dilations group");
  attrs.emplace_back("pads", pads);
  attrs.emplace_back("output_padding", more);
  e.emit("ConvTranspose", e.all_inputs(), attrs);
}

// ONNX Runtime takes one zero point of w alone. With one for each channel, Σ (x - xz)(w - wz) is
// Σ (x - xz) w - wz Σ (x - xz): padding adds nothing to either sum.
void conv_integer(Emitter& e) {
  const NodeAttrs attrs = e.attrs("strides pads dilations group");
  if (e.inputs() < 4 || e.in_type(3).shape.empty()) {
    return e.emit("ConvInteger", e.all_inputs(), attrs);
  }
  ir::TensorType ones = e.in_type(1);
  if (e.integer("group") == 1) ones.shape[0] = 1;  // the same sum for all channels
  Ints channels(ones.shape.size() - 1, 1);
  channels[0] = -1;
  const std::string product = e.make("ConvInteger", {e.in(0), e.in(1), e.in(2)}, attrs);
  const std::string sum = e.make("ConvInteger", {e.in(0), e.splat(ones, 1.0), e.in(2)}, attrs);
  const std::string wide = e.cast(e.in(3), ones.dtype, DType::kI32);
  const std::string zero_point = e.make("Reshape", {wide, e.int_list(channels)});
  e.emit("Sub", {product, e.make("Mul", {sum, zero_point})});
}

// ONNX has the bias before the mask; alone, the one of rank 1 is the bias.
void deform_conv(Emitter& e) {
  Names in{e.in(0), e.in(1), e.in(2)};
  const bool lone_bias = e.inputs() == 4 && e.in_type(3).rank() == 1;
  if (e.inputs() == 5) {
    in.push_back(e.in(4));
    in.push_back(e.in(3));
  } else if (e.inputs() == 4) {
    if (!lone_bias) in.emplace_back();
    in.push_back(e.in(3));
  }
  e.emit("DeformConv", in, e.attrs("strides pads dilations group offset_group"));
}

void max_pool_indices(Emitter& e) {
  e.write("MaxPool", {e.in(0)}, {e.fresh(), e.out()},
          e.attrs("kernel_shape=kernel strides pads dilations storage_order=column_major"));
}

// Padding counts as a whole or not at all, so the part that does is put around x before.
void avg_pool(Emitter& e) {
  NodeAttrs attrs = e.attrs("kernel_shape=kernel strides dilations");
  const Ints& counted = e.ints("counted_pads");
  Ints pads = e.ints("pads");
  const bool none = std::all_of(counted.begin(), counted.end(), [](int64_t p) { return p == 0; });
  if (none || counted == pads) {
    attrs.emplace_back("count_include_pad", int64_t{none ? 0 : 1});
    if (!pads.empty()) attrs.emplace_back("pads", pads);
    return e.emit("AveragePool", {e.in(0)}, attrs);
  }
  const size_t dims = counted.size() / 2;
  Ints around(counted.size() + 4, 0);
  for (size_t d = 0; d < dims; ++d) {
    around[2 + d] = counted[d];
    around[4 + dims + d] = counted[dims + d];
  }
  for (size_t i = 0; i < pads.size(); ++i) pads[i] -= counted[i];
  attrs.emplace_back("pads", pads);
  const std::string zero = e.scalar(e.in_type(0).dtype, 0.0);
  e.emit("AveragePool", {e.make("Pad", {e.in(0), e.int_list(around), zero})}, attrs);
}

// With a kernel, or else pads, that make the shape: output_shape would change what indices mean.
void max_unpool(Emitter& e) {
  const Ints& shape = e.ints("shape");
  const ir::Shape& x = e.in_type(0).shape;
  if (shape.size() < 3) return e.refuse("tensors without planes");
  if (shape.size() != x.size() || shape[0] != x[0] || shape[1] != x[1]) {
    return e.refuse("an output that differs in more than its planes");
  }
  const size_t planes = shape.size() - 2;
  Ints kernel(planes, 1);
  Ints pads(2 * planes, 0);
  for (size_t d = 0; d < planes; ++d) {
    const int64_t grown = shape[d + 2] - x[d + 2];
    (grown > 0 ? kernel[d] : pads[planes + d]) += std::abs(grown);
  }
  e.emit("MaxUnpool", {e.in(0), e.in(1)}, {{"kernel_shape", kernel}, {"pads", pads}});
}

void col2im(Emitter& e) {
  e.emit("Col2Im", {e.in(0), e.int_list(e.ints("image_shape")), e.int_list(e.ints("block_shape"))},
         e.attrs("strides pads dilations"));
}

void roi_align(Emitter& e) {
  NodeAttrs attrs = e.attrs("mode sampling_ratio spatial_scale");
  attrs.emplace_back("output_height", e.ints("size")[0]);
  attrs.emplace_back("output_width", e.ints("size")[1]);
  attrs.emplace_back("coordinate_transformation_mode",
                     std::string(e.flag("half_pixel") ? "half_pixel" : "output_half_pixel"));
  e.emit("RoiAlign", {e.in(0), e.in(1), e.cast(e.in(2), e.in_type(2).dtype, DType::kI64)}, attrs);
}

void affine_grid(Emitter& e) {
  const size_t planes = e.ints("size").size() - 2;
  if (planes != 2 && planes != 3) return e.refuse("grids of other than 2 or 3 dims");
  e.emit("AffineGrid", {e.in(0), e.int_list(e.ints("size"))}, e.attrs("align_corners"));
}

constexpr std::string_view kPooled = "f16 bf16 f32 f64 i8 u8";

constexpr Rule kWindowRules[] = {
    {"affine_grid", affine_grid},
    {"avg_pool", avg_pool},
    {"col2im", col2im},
    {"conv_integer", conv_integer},
    {"conv_transpose", conv_transpose},
    {"deform_conv", deform_conv},
    {"max_pool_indices", max_pool_indices, {.dtypes = kPooled}},
    {"max_unpool", max_unpool, {.dtypes = kFloats}},
    {"roi_align", roi_align},
};

}  // namespace

Rules window_rules() { return kWindowRules; }

}  // namespace pyc::onnx::exporting
