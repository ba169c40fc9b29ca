// Ops with windows, and resize.

#include "support/draw.h"

namespace pyc::test {
namespace {

// A window and planes it fits into.
struct Window {
  Shape planes;
  Ints kernel;
  Ints counts;  // places for it
  Attrs attrs;

  Shape shape(int64_t batch, int64_t channels) const {
    Shape out{batch, channels};
    out.insert(out.end(), planes.begin(), planes.end());
    return out;
  }
};

Window window(Draw& d, int64_t dims) {
  Window w;
  Ints strides;
  Ints dilations;
  Ints begin;
  Ints end;
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t kernel = d.pick(1, 3);
    const int64_t dilation = d.chance(3) ? 2 : 1;
    const int64_t reach = (kernel - 1) * dilation + 1;
    const int64_t plane = reach + d.pick(0, dims > 2 ? 2 : 5);
    const int64_t stride = d.pick(1, 3);
    begin.push_back(d.flip() ? 0 : d.pick(0, kernel - 1));
    end.push_back(d.flip() ? 0 : d.pick(0, kernel - 1));
    w.kernel.push_back(kernel);
    strides.push_back(stride);
    dilations.push_back(dilation);
    w.planes.push_back(plane);
    w.counts.push_back((plane + begin.back() + end.back() - reach) / stride + 1);
  }
  begin.insert(begin.end(), end.begin(), end.end());
  w.attrs = {{"strides", strides}, {"dilations", dilations}, {"pads", begin}};
  return w;
}

Result<ValueId> pool(Draw& d, DType t, std::string_view op, Attrs attrs = {}) {
  Window w = window(d, d.pick(1, 3));
  const ValueId x = d.tensor(t, w.shape(d.pick(1, 2), d.pick(1, 3)));
  attrs.merge(w.attrs);
  attrs["kernel"] = w.kernel;
  return d.op(op, {x}, std::move(attrs));
}

Result<ValueId> avg_pool(Draw& d, DType t) {
  Window w = window(d, d.pick(1, 3));
  const ValueId x = d.tensor(t, w.shape(d.pick(1, 2), d.pick(1, 3)));
  w.attrs["kernel"] = w.kernel;
  if (d.flip()) w.attrs["counted_pads"] = w.attrs["pads"];
  return d.op("avg_pool", {x}, std::move(w.attrs));
}
Result<ValueId> max_pool(Draw& d, DType t) { return pool(d, t, "max_pool"); }
Result<ValueId> max_pool_indices(Draw& d, DType t) {
  return pool(d, t, "max_pool_indices", {{"column_major", d.flip()}});
}
Result<ValueId> lp_pool(Draw& d, DType t) { return pool(d, t, "lp_pool", {{"p", d.pick(1, 3)}}); }

Result<ValueId> global_pool(Draw& d, DType t, std::string_view op, Attrs attrs = {}) {
  return d.op(op, {d.tensor(t, d.shape(3, 5, 1))}, std::move(attrs));
}
Result<ValueId> global_avg_pool(Draw& d, DType t) { return global_pool(d, t, "global_avg_pool"); }
Result<ValueId> global_max_pool(Draw& d, DType t) { return global_pool(d, t, "global_max_pool"); }
Result<ValueId> global_lp_pool(Draw& d, DType t) {
  return global_pool(d, t, "global_lp_pool", {{"p", d.pick(1, 3)}});
}

// Channels per group in and out, and the groups.
struct Groups {
  int64_t groups;
  int64_t in;
  int64_t out;
};
Groups groups(Draw& d) { return {d.choose<int64_t>({1, 1, 2, 3}), d.pick(1, 3), d.pick(1, 3)}; }

Shape weights(int64_t first, int64_t second, const Ints& kernel) {
  Shape out{first, second};
  out.insert(out.end(), kernel.begin(), kernel.end());
  return out;
}

Result<ValueId> conv(Draw& d, DType t) {
  Window w = window(d, d.pick(1, 3));
  const Groups g = groups(d);
  std::vector<ValueId> inputs{d.tensor(t, w.shape(d.pick(1, 2), g.groups * g.in)),
                              d.tensor(t, weights(g.groups * g.out, g.in, w.kernel))};
  if (d.flip()) inputs.push_back(d.tensor(t, {g.groups * g.out}));
  w.attrs["group"] = g.groups;
  return d.op("conv", std::move(inputs), std::move(w.attrs));
}

Result<ValueId> conv_integer(Draw& d, DType t) {
  Window w = window(d, d.pick(1, 2));
  const Groups g = groups(d);
  const DType u = d.choose({DType::kI8, DType::kU8});
  const int64_t channels = g.groups * g.out;
  std::vector<ValueId> inputs{d.tensor(t, w.shape(d.pick(1, 2), g.groups * g.in)),
                              d.tensor(u, weights(channels, g.in, w.kernel))};
  if (d.flip()) inputs.push_back(d.tensor(t, {}));
  if (inputs.size() > 2 && d.flip())
    inputs.push_back(d.tensor(u, d.flip() ? Shape{} : Shape{channels}));
  w.attrs["group"] = g.groups;
  return d.op("conv_integer", std::move(inputs), std::move(w.attrs));
}

Result<ValueId> conv_transpose(Draw& d, DType t) {
  const int64_t dims = d.pick(1, 2);
  const Groups g = groups(d);
  Shape planes;
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints pads;
  Ints to;
  for (int64_t i = 0; i < dims; ++i) {
    planes.push_back(d.pick(1, 4));
    kernel.push_back(d.pick(1, 3));
    strides.push_back(d.pick(1, 2));
    dilations.push_back(d.pick(1, 2));
    pads.push_back(d.pick(0, kernel.back() - 1));
    const int64_t reach = (kernel.back() - 1) * dilations.back() + 1;
    to.push_back(
        std::max<int64_t>(1, (planes.back() - 1) * strides.back() + reach - 2 * pads.back()));
  }
  Shape x{d.pick(1, 2), g.groups * g.in};
  x.insert(x.end(), planes.begin(), planes.end());
  std::vector<ValueId> inputs{d.tensor(t, x), d.tensor(t, weights(g.groups * g.in, g.out, kernel))};
  if (d.flip()) inputs.push_back(d.tensor(t, {g.groups * g.out}));
  return d.op("conv_transpose", std::move(inputs),
              {{"output_shape", to},
               {"strides", strides},
               {"pads", pads},
               {"dilations", dilations},
               {"group", g.groups}});
}

Result<ValueId> deform_conv(Draw& d, DType t) {
  Window w = window(d, 2);
  const Groups g = groups(d);
  const int64_t batch = d.pick(1, 2);
  const int64_t offsets = d.flip() ? g.groups : 1;
  const int64_t taps = w.kernel[0] * w.kernel[1] * offsets;
  const Shape places{batch, taps, w.counts[0], w.counts[1]};
  Shape moves = places;
  moves[1] *= 2;
  std::vector<ValueId> inputs{d.tensor(t, w.shape(batch, g.groups * g.in)),
                              d.tensor(t, weights(g.groups * g.out, g.in, w.kernel)),
                              d.fresh(t, moves, -1.5, 1.5)};
  if (d.flip()) inputs.push_back(d.tensor(t, places));
  if (d.flip()) inputs.push_back(d.tensor(t, {g.groups * g.out}));
  w.attrs["group"] = g.groups;
  w.attrs["offset_group"] = offsets;
  return d.op("deform_conv", std::move(inputs), std::move(w.attrs));
}

Result<ValueId> col2im(Draw& d, DType t) {
  Window w = window(d, d.pick(1, 2));
  int64_t block = 1;
  int64_t count = 1;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    block *= w.kernel[i];
    count *= w.counts[i];
  }
  const ValueId x = d.tensor(t, {d.pick(1, 2), block * d.pick(1, 2), count});
  w.attrs["image_shape"] = w.planes;
  w.attrs["block_shape"] = w.kernel;
  return d.op("col2im", {x}, std::move(w.attrs));
}

Result<ValueId> lrn(Draw& d, DType t) {
  return d.op("lrn", {d.tensor(t, d.shape(2, 4))},
              {{"size", d.choose<int64_t>({1, 3, 5})}, {"alpha", 0.1}, {"bias", 1.5}});
}

Result<ValueId> resize(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const std::string mode = d.word({"nearest", "linear", "cubic"});
  const std::string coordinates =
      d.word({"half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners",
              "pytorch_half_pixel", "tf_crop_and_resize"});
  Ints sizes;
  std::vector<double> roi(2 * shape.size(), 0.0);
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool moves = shape[i] <= 9 && d.flip();
    sizes.push_back(moves ? d.pick(1, 2 * shape[i]) : shape[i]);
    roi[i] = moves ? 0.125 : 0.0;
    roi[shape.size() + i] = moves ? 0.75 : 1.0;
  }
  Attrs attrs{{"sizes", sizes}, {"mode", mode}, {"coordinates", coordinates}};
  if (coordinates == "tf_crop_and_resize") attrs["roi"] = roi;
  if (mode == "nearest") {
    attrs["nearest"] = d.word({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  } else if (coordinates != "tf_crop_and_resize") {
    attrs["antialias"] = d.chance(3);
    if (mode == "cubic") attrs["exclude_outside"] = d.flip();
  }
  return d.op("resize", {d.tensor(t, shape)}, std::move(attrs));
}

constexpr Recipe kWindowRecipes[] = {
    {"avg_pool", avg_pool},
    {"col2im", col2im},
    {"conv", conv},
    {"conv_integer", conv_integer},
    {"conv_transpose", conv_transpose},
    {"deform_conv", deform_conv},
    {"global_avg_pool", global_avg_pool},
    {"global_lp_pool", global_lp_pool},
    {"global_max_pool", global_max_pool},
    {"lp_pool", lp_pool},
    {"lrn", lrn},
    {"max_pool", max_pool},
    {"max_pool_indices", max_pool_indices, true},
    {"resize", resize},
};

}  // namespace

Recipes window_recipes() { return kWindowRecipes; }

}  // namespace pyc::test
