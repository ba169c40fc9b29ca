#include <numeric>

#include "ops/support/convolution.h"
#include "ops/support/products.h"
#include "ops/support/sample.h"

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
  };
  return def;
}

}  // namespace pyc::ops
