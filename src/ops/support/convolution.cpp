#include "ops/support/convolution.h"

#include <algorithm>

#include "base/matrix_unit.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

std::vector<ir::AttrDef> conv_attrs() {
  auto attrs = window_attrs();
  attrs.push_back(optional("group", int64_t{1}));
  return attrs;
}

Status check_group(int64_t group, const TensorType& x, int64_t in_channels, const TensorType& w,
                   int64_t out_channels) {
  if (group < 1) return refuse(Code::kInvalidArgument, "group must be positive, found ", group);
  if (in_channels % group == 0 && out_channels % group == 0) return {};
  return refuse(Code::kShapeMismatch, "group ", group, " does not divide the channels of x ", x,
                " and w ", w);
}

Result<Shape> conv_shape(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& w = args.inputs[1];
  PYC_TRY(require_planes("x", x));
  PYC_TRY(require_rank("w", w, x.rank()));
  const int64_t group = args.attr_int("group");
  PYC_TRY(check_group(group, x, x.shape[1], w, w.shape[0]));
  if (w.shape[1] != x.shape[1] / group) {
    return refuse(Code::kShapeMismatch, "w ", w, " takes ", w.shape[1], " channels per group, x ",
                  x, " has ", x.shape[1] / group);
  }
  PYC_ASSIGN(const Window window, make_window(args.attrs, planes_of(w)));
  PYC_ASSIGN(const Ints counts, count_windows(window, planes_of(x)));
  return with_planes(x.shape[0], w.shape[0], counts);
}

Status check_bias(const TensorType& x, const TensorType& bias, int64_t channels) {
  PYC_TRY(require_same_dtype(x, bias));
  if (bias.shape == Shape{channels}) return {};
  return refuse(Code::kShapeMismatch, "bias must have shape [", channels, "], found ", bias);
}

Window conv_window(const LowerContext& context) {
  return window_of(context.node().attrs, planes_of(context.input_type(1)));
}

Expr first_channel(LowerContext& context, Expr channel, int64_t group, int64_t out, int64_t in) {
  if (group == 1) return context.index(0);
  return floor_div(channel, context.index(std::max<int64_t>(out, 1))) * context.index(in);
}

namespace {

// How many numbers the channels of one tap take.
int64_t channel_steps(const LowerContext& context, int64_t channels) {
  const MatrixUnit* unit = context.unit();
  if (unit == nullptr || channels < kUnitChannels) return channels;
  return (channels + unit->block - 1) / unit->block * unit->block;
}

}  // namespace

Expr sum_conv(LowerContext& context, const Window& window, std::span<const Expr> index,
              const std::function<ReduceTerm(const ConvStep&)>& term) {
  const Shape& w = context.input_type(1).shape;
  const int64_t group = context.attr_int("group");
  const Expr first = first_channel(context, index[1], group, w[0] / group, w[1]);
  Ints extents = window.kernel;
  extents.push_back(channel_steps(context, w[1]));
  const auto step = [&](std::span<const Expr> k) {
    const auto taps = k.first(window.dims());
    ConvStep s{taps, first + k.back(), with_planes(index[1], k.back(), taps)};
    if (extents.back() != w[1]) s.is_channel = lt(k.back(), context.index(w[1]));
    return term(s);
  };
  return context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum, extents, step,
                        kChainSegment);
}

Expr finish_conv(LowerContext& context, Expr sum, int bias, Expr channel) {
  if (context.inputs() <= bias) return rounded(context, sum);
  return rounded(context, sum + context.input_compute(bias, {&channel, 1}));
}

}  // namespace pyc::ops
