#include "ops/support/backward.h"
#include "ops/support/convolution.h"
#include "ops/support/draws.h"
#include "ops/support/products.h"
#include "ops/support/window_gradient.h"

namespace pyc::ops {
namespace {

std::vector<ir::AttrDef> attrs_conv() {
  auto result = conv_attrs();
  result.push_back(wide_result_attr());
  return result;
}

Types infer_conv(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kFloats));
  PYC_TRY(require_same_dtype(x, args.inputs[1]));
  PYC_ASSIGN(Shape shape, conv_shape(args));
  if (args.inputs.size() > 2) PYC_TRY(check_bias(x, args.inputs[2], shape[1]));
  PYC_ASSIGN(const DType to, product_dtype(args));
  return one(to, std::move(shape));
}

// Groups of few channels would leave most of a unit's blocks empty.
bool fills_unit(const InferArgs& args) {
  return args.attr_int("group") == 1 || args.inputs[1].shape[1] >= kUnitChannels;
}

// Outside the input the patch is +0; a channel that only fills a block is +0 on both sides.
ReduceTerm unit_term(LowerContext& context, Tap tap, Expr batch, const ConvStep& step) {
  if (!step.is_channel.valid()) {
    return {.value = read_tap(context, tap, batch, step.channel).value,
            .value2 = context.input_compute(1, step.w)};
  }
  const DType t = context.input_type(1).dtype;
  tap.inside = tap.inside & step.is_channel;
  const Expr w = context.input_if(1, step.w, step.is_channel, constant(context.pool(), t, 0.0));
  return {.value = read_tap(context, tap, batch, step.channel).value,
          .value2 = convert(w, compute_dtype(t))};
}

Expr lower_conv(LowerContext& context, int, std::span<const Expr> index) {
  const Window window = conv_window(context);
  const Expr sum = sum_conv(context, window, index, [&](const ConvStep& step) {
    const Tap tap = tap_at(context, window, index.subspan(2), step.k);
    if (context.unit() != nullptr) return unit_term(context, tap, index[0], step);
    ReduceTerm term = read_tap(context, tap, index[0], step.channel);
    term.value2 = context.input_compute(1, step.w);
    return term;
  });
  return finish_conv(context, sum, 2, index[1]);
}

Grads gradient_conv(ir::GraphBuilder& builder, const ir::Node& node,
                    std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const Window window = window_of(node.attrs, planes_of(b.input_type(1)));
  const int64_t group = b.attrs().attr_int("group");
  const ValueId g = b.stored(b.g(), 0);
  const ValueId of_x =
      conv_input_gradient(b, g, b.input(1), window, group, planes_of(b.input_type(0)));
  std::vector<ValueId> result{of_x, conv_weight_gradient(b, b.input(0), g, window, group)};
  if (b.inputs() > 2) {
    Ints axes = int_range(1, b.input_type(0).rank());
    axes[0] = 0;  // all but the channels
    result.push_back(b.stored(b.sum(b.g(), axes, false), 2));
  }
  return b.outputs(result);
}

Result<ValueId> draw_conv(Draw& d, DType t) {
  DrawnWindow w = drawn_window(d, d.pick(1, 3));
  const DrawnGroups g = drawn_groups(d);
  std::vector<ValueId> inputs{d.tensor(t, w.shape(d.pick(1, 2), g.groups * g.in)),
                              d.tensor(t, drawn_weights(g.groups * g.out, g.in, w.kernel))};
  if (d.flip()) inputs.push_back(d.tensor(t, {g.groups * g.out}));
  w.attrs["group"] = g.groups;
  return d.op(std::move(inputs), std::move(w.attrs));
}

}  // namespace

const ir::OpDef& op_conv() {
  static const ir::OpDef def{
      .name = "conv",
      .summary =
          "Convolution of x (NC, planes) with w (OI, kernel), plus a bias per output channel "
          "if given.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = attrs_conv(),
      .infer = infer_conv,
      .lower = lower_conv,
      .traits = {.product = true, .factors = 2, .adds_input = true},
      .on_unit = fills_unit,
      .gradient = gradient_conv,
      .onnx = {.name = "Conv", .attrs = "strides pads dilations group"},
      .draw = {.node = draw_conv},
  };
  return def;
}

}  // namespace pyc::ops
