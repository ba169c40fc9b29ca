#include <algorithm>

#include "ops/support/elementwise.h"
#include "ops/support/window.h"

namespace pyc::ops {
namespace {

Status check_channels(const TensorType& x, const TensorType& w, int64_t group) {
  if (group < 1) return refuse(Code::kInvalidArgument, "group must be positive, found ", group);
  if (x.shape[1] % group != 0 || w.shape[0] % group != 0) {
    return refuse(Code::kShapeMismatch, "group ", group, " does not divide the channels of x ", x,
                  " and w ", w);
  }
  if (w.shape[1] != x.shape[1] / group) {
    return refuse(Code::kShapeMismatch, "w ", w, " takes ", w.shape[1], " channels per group, x ",
                  x, " has ", x.shape[1] / group);
  }
  return {};
}

Types infer(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& w = args.inputs[1];
  PYC_TRY(require_dtype("x", x, kFloats));
  PYC_TRY(require_same_dtype(x, w));
  PYC_TRY(require_rank("x (NCHW)", x, 4));
  PYC_TRY(require_rank("w (OIHW)", w, 4));
  PYC_TRY(check_channels(x, w, args.attr_int("group")));
  if (args.inputs.size() > 2) {
    const TensorType& bias = args.inputs[2];
    PYC_TRY(require_same_dtype(x, bias));
    if (bias.shape != Shape{w.shape[0]}) {
      return refuse(Code::kShapeMismatch, "bias must have shape [", w.shape[0], "], found ", bias);
    }
  }
  PYC_ASSIGN(const Window window, make_window({w.shape[2], w.shape[3]}, args.attr_ints("strides"),
                                              args.attr_ints("pads"), args.attr_ints("dilations")));
  PYC_ASSIGN(const auto counts, count_windows(window, x));
  return one(x.dtype, {x.shape[0], w.shape[0], counts[0], counts[1]});
}

Expr lower(LowerContext& context, int, std::span<const Expr> index) {
  const Shape& w = context.input_type(1).shape;
  const Window window = conv_window(context);
  const Expr channel = index[1];
  const int64_t group = context.attr_int("group");
  const int64_t per_group = std::max<int64_t>(w[0] / group, 1);
  const Expr first_input = group == 1
                               ? context.index(0)
                               : floor_div(channel, context.index(per_group)) * context.index(w[1]);
  const DType t = context.input_type(0).dtype;
  const auto term = [&](std::span<const Expr> k) {
    const Tap tap = tap_at(context, window, index[2], index[3], k[0], k[1]);
    const Expr x = context.input_if(0, Index{index[0], first_input + k[2], tap.h, tap.w},
                                    tap.inside, zero(context, t));
    return ReduceTerm{
        .value = convert(x, compute_dtype(t)),
        .value2 = context.input_compute(1, Index{channel, k[2], k[0], k[1]}),
        .guard = always(tap.inside) ? Expr{} : tap.inside,
    };
  };
  const int64_t extents[] = {w[2], w[3], w[1]};
  const Expr sum =
      context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum, extents, term, kChainSegment);
  if (context.inputs() == 2) return rounded(context, sum);
  return rounded(context, sum + context.input_compute(2, {&channel, 1}));
}

}  // namespace

const ir::OpDef& op_conv2d() {
  static const ir::OpDef def{
      .name = "conv2d",
      .summary = "Convolution of x (NCHW) with w (OIHW), plus a bias per output channel if given.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = {optional("strides", Ints{1, 1}), optional("pads", Ints{0, 0, 0, 0}),
                optional("dilations", Ints{1, 1}), optional("group", int64_t{1})},
      .infer = infer,
      .lower = lower,
  };
  return def;
}

}  // namespace pyc::ops
