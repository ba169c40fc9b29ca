#include "ops/support/convolution.h"
#include "ops/support/draws.h"

namespace pyc::ops {
namespace {

constexpr DTypeClass kBytes{[](DType t) { return t == DType::kI8 || t == DType::kU8; },
                            "dtype i8 or u8"};

Types infer_conv_integer(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& w = args.inputs[1];
  PYC_TRY(require_dtype("x", x, kBytes));
  PYC_TRY(require_dtype("w", w, kBytes));
  PYC_ASSIGN(Shape shape, conv_shape(args));
  for (size_t i = 2; i < args.inputs.size(); ++i) {
    const TensorType& zero_point = args.inputs[i];
    PYC_TRY(require_same_dtype(args.inputs[i - 2], zero_point));
    const bool per_channel = i == 3 && zero_point.shape == Shape{w.shape[0]};
    if (zero_point.shape.empty() || per_channel) continue;
    return refuse(Code::kShapeMismatch, "the zero point of ", i == 2 ? "x" : "w",
                  " must be a scalar", i == 2 ? "" : " or one per output channel", ", found ",
                  zero_point);
  }
  return one(DType::kI32, std::move(shape));
}

// `value` of input i less its zero point, if there is one.
Expr centred(LowerContext& context, int i, Expr value, Expr channel) {
  const Expr wide = convert(value, DType::kI32);
  if (context.inputs() <= i + 2) return wide;
  Index at;
  if (context.input_type(i + 2).rank() == 1) at.push_back(channel);
  return wide - convert(context.input(i + 2, at), DType::kI32);
}

Expr lower_conv_integer(LowerContext& context, int, std::span<const Expr> index) {
  const Window window = conv_window(context);
  return sum_conv(context, window, index, [&](const ConvStep& step) {
    const Tap tap = tap_at(context, window, index.subspan(2), step.k);
    ReduceTerm term = read_tap(context, tap, index[0], step.channel);
    term.value = centred(context, 0, term.value, index[1]);
    term.value2 = centred(context, 1, context.input(1, step.w), index[1]);
    return term;
  });
}

Result<ValueId> draw_conv_integer(Draw& d, DType t) {
  DrawnWindow w = drawn_window(d, d.pick(1, 2));
  const DrawnGroups g = drawn_groups(d);
  const DType u = d.choose({DType::kI8, DType::kU8});
  const int64_t channels = g.groups * g.out;
  std::vector<ValueId> inputs{d.tensor(t, w.shape(d.pick(1, 2), g.groups * g.in)),
                              d.tensor(u, drawn_weights(channels, g.in, w.kernel))};
  if (d.flip()) inputs.push_back(d.tensor(t, {}));
  if (inputs.size() > 2 && d.flip())
    inputs.push_back(d.tensor(u, d.flip() ? Shape{} : Shape{channels}));
  w.attrs["group"] = g.groups;
  return d.op(std::move(inputs), std::move(w.attrs));
}

}  // namespace

const ir::OpDef& op_conv_integer() {
  static const ir::OpDef def{
      .name = "conv_integer",
      .summary =
          "Convolution of (x - x_zero_point) with (w - w_zero_point) in i32; the zero points "
          "may be left out, that of w may be one per output channel.",
      .min_inputs = 2,
      .max_inputs = 4,
      .attrs = conv_attrs(),
      .infer = infer_conv_integer,
      .lower = lower_conv_integer,
      .no_gradient = "it works on integers",
      .onnx = {.name = "ConvInteger", .attrs = "strides pads dilations group"},
      .draw = {.node = draw_conv_integer},
  };
  return def;
}

}  // namespace pyc::ops
