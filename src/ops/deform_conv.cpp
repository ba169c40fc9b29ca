#include <numeric>

#include "ops/support/convolution.h"
#include "ops/support/draws.h"
#include "ops/support/products.h"
#include "ops/support/sample.h"
#include "ops/support/sample_form.h"

namespace pyc::ops {
namespace {

std::vector<ir::AttrDef> attrs_deform_conv() {
  auto result = conv_attrs();
  result.push_back(optional("offset_group", int64_t{1}));
  result.push_back(wide_result_attr());
  return result;
}

// Input 3 is the mask unless it is the bias, which has rank 1.
bool has_mask(std::span<const TensorType> inputs) {
  return inputs.size() > 4 || (inputs.size() == 4 && inputs[3].rank() != 1);
}

Status check_places(std::string_view what, const TensorType& found, int64_t channels,
                    const Shape& output) {
  const Shape expected = with_planes(output[0], channels, Shape(output.begin() + 2, output.end()));
  if (found.shape == expected) return {};
  return refuse(Code::kShapeMismatch, what, " must have shape ", expected, ", found ", found);
}

Types infer_deform_conv(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kFloats));
  for (const TensorType& other : args.inputs.subspan(1)) PYC_TRY(require_same_dtype(x, other));
  PYC_ASSIGN(Shape shape, conv_shape(args));
  const int64_t groups = args.attr_int("offset_group");
  if (groups < 1 || x.shape[1] % groups != 0) {
    return refuse(Code::kInvalidArgument, "offset_group ", groups,
                  " must divide the channels of x ", x);
  }
  const Shape kernel = planes_of(args.inputs[1]);
  const int64_t taps = std::accumulate(kernel.begin(), kernel.end(), groups, std::multiplies<>());
  PYC_TRY(
      check_places("offset", args.inputs[2], taps * static_cast<int64_t>(kernel.size()), shape));
  const bool mask = has_mask(args.inputs);
  if (mask) PYC_TRY(check_places("mask", args.inputs[3], taps, shape));
  if (args.inputs.size() > (mask ? 4 : 3)) {
    PYC_TRY(check_bias(x, args.inputs.back(), shape[1]));
  }
  PYC_ASSIGN(const DType to, product_dtype(args));
  return one(to, std::move(shape));
}

Expr lower_deform_conv(LowerContext& context, int, std::span<const Expr> index) {
  const Window window = conv_window(context);
  const Shape planes = planes_of(context.input_type(0));
  const auto o = index.subspan(2);
  const int64_t channels = context.input_type(0).shape[1];
  const int64_t per_offset = std::max<int64_t>(channels / context.attr_int("offset_group"), 1);
  const int64_t taps =
      std::accumulate(window.kernel.begin(), window.kernel.end(), int64_t{1}, std::multiplies<>());
  const bool masked =
      context.inputs() > 4 || (context.inputs() == 4 && context.input_type(3).rank() != 1);
  const DType wide = compute_dtype(context.input_type(0).dtype);
  const Expr sum = sum_conv(context, window, index, [&](const ConvStep& step) {
    const Expr tap = floor_div(step.channel, context.index(per_offset)) * context.index(taps) +
                     position(context, step.k, window.kernel);
    const Tap regular = tap_at(context, window, o, step.k);
    std::vector<SampleTaps> dims;
    for (size_t d = 0; d < window.dims(); ++d) {
      const Expr row = tap * context.index(static_cast<int64_t>(window.dims())) +
                       context.index(static_cast<int64_t>(d));
      const Expr offset = context.input_compute(2, with_planes(index[0], row, o));
      dims.push_back(linear_taps(context, convert(regular.at[d], wide) + offset, planes[d]));
    }
    Expr value = interpolate(context, index[0], step.channel, dims);
    if (masked) value = value * context.input_compute(3, with_planes(index[0], tap, o));
    return ReduceTerm{.value = value, .value2 = context.input_compute(1, step.w)};
  });
  return finish_conv(context, sum, masked ? 4 : 3, index[1]);
}

// Where along dim d each tap of each place lies before it is moved: [taps, places].
std::vector<double> regular_places(const Window& window, const Ints& counts, size_t d) {
  const int64_t taps = TensorType{DType::kU8, window.kernel}.elements();
  const int64_t places = TensorType{DType::kU8, counts}.elements();
  const Shape tap_strides = ir::strides_of(window.kernel);
  const Shape place_strides = ir::strides_of(counts);
  std::vector<double> at;
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t p = 0; p < places; ++p) {
      const int64_t k = t / tap_strides[d] % window.kernel[d];
      const int64_t o = p / place_strides[d] % counts[d];
      at.push_back(
          static_cast<double>(o * window.strides[d] + k * window.dilations[d] - window.begin[d]));
    }
  }
  return at;
}

Result<std::vector<ValueId>> gradient_form_deform_conv(ir::GraphBuilder& builder,
                                                       const ir::Node& node) {
  Compose c(builder, node);
  // Each tap of each place sampled, then a product with the weights.
  const TensorType x = c.input_type(0);
  const TensorType w = c.input_type(1);
  const Window window = window_of(node.attrs, planes_of(w));
  PYC_ASSIGN(const Ints counts, count_windows(window, planes_of(x)));
  const auto dims = static_cast<int64_t>(window.dims());
  const int64_t groups = c.attrs().attr_int("offset_group");
  const int64_t taps = TensorType{DType::kU8, window.kernel}.elements();
  const int64_t places = TensorType{DType::kU8, counts}.elements();
  const int64_t images = x.shape[0] * groups;
  // [images, taps, dims, places] of the offsets, and one dim of it as [images, taps·places].
  const ValueId offsets = c.reshape(c.wide_input(2), {images, taps, dims, places});
  std::vector<PlacedTaps> found;
  for (int64_t d = 0; d < dims; ++d) {
    const ValueId moved = c.reshape(c.slice(offsets, 2, d, d + 1), {images, taps, places});
    const std::vector<double> at = regular_places(window, counts, static_cast<size_t>(d));
    const ValueId place = c.add(moved, c.constant(c.type(moved).dtype, {taps, places}, at));
    found.push_back(linear_taps(c, c.reshape(place, {images, taps * places}),
                                x.shape[static_cast<size_t>(d) + 2]));
  }
  const ValueId grouped =
      c.reshape(c.wide_input(0), with_planes(images, x.shape[1] / groups, planes_of(x)));
  ValueId columns = interpolate(c, grouped, found);
  std::vector<TensorType> types;
  for (size_t i = 0; i < c.inputs(); ++i) types.push_back(c.input_type(i));
  const bool masked = has_mask(types);
  if (masked) columns = c.mul(columns, c.reshape(c.wide_input(3), {images, 1, taps * places}));
  const int64_t group = c.attrs().attr_int("group");
  const int64_t depth = w.shape[1] * taps;
  const ValueId rows = c.reshape(columns, {x.shape[0], group, depth, places});
  const ValueId weights = c.reshape(c.wide_input(1), {group, w.shape[0] / group, depth});
  ValueId y = c.reshape(c.op("matmul", {weights, rows}), {x.shape[0], w.shape[0], places});
  const size_t bias = masked ? 4 : 3;
  if (c.inputs() > bias) y = c.add(y, c.reshape(c.wide_input(bias), {w.shape[0], 1}));
  const DType to = c.attrs().has("to") ? c.attrs().attr_dtype("to") : x.dtype;
  return c.outputs({c.cast(c.reshape(y, with_planes(x.shape[0], w.shape[0], counts)), to)});
}

Result<ValueId> draw_deform_conv(Draw& d, DType t) {
  DrawnWindow w = drawn_window(d, 2);
  const DrawnGroups g = drawn_groups(d);
  const int64_t batch = d.pick(1, 2);
  const int64_t offsets = d.flip() ? g.groups : 1;
  const int64_t taps = w.kernel[0] * w.kernel[1] * offsets;
  const Shape places{batch, taps, w.counts[0], w.counts[1]};
  Shape moves = places;
  moves[1] *= 2;
  std::vector<ValueId> inputs{d.tensor(t, w.shape(batch, g.groups * g.in)),
                              d.tensor(t, drawn_weights(g.groups * g.out, g.in, w.kernel)),
                              d.fresh(t, moves, -1.5, 1.5)};
  if (d.flip()) inputs.push_back(d.tensor(t, places));
  if (d.flip()) inputs.push_back(d.tensor(t, {g.groups * g.out}));
  w.attrs["group"] = g.groups;
  w.attrs["offset_group"] = offsets;
  return d.op(std::move(inputs), std::move(w.attrs));
}

}  // namespace

const ir::OpDef& op_deform_conv() {
  static const ir::OpDef def{
      .name = "deform_conv",
      .summary =
          "Convolution whose taps are moved by `offset` and weighted by `mask`: inputs x, w, "
          "offset, then mask and bias (rank 1) if given; x is 0 outside, linear between.",
      .min_inputs = 3,
      .max_inputs = 5,
      .attrs = attrs_deform_conv(),
      .infer = infer_deform_conv,
      .lower = lower_deform_conv,
      .traits = {.product = true},
      .gradient_form = gradient_form_deform_conv,
      .draw = {.node = draw_deform_conv},
  };
  return def;
}

}  // namespace pyc::ops
