#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
#include "ops/support/operands.h"

namespace pyc::ops {
namespace {

Types infer_causal_conv_with_state(const InferArgs& args) {
  PYC_TRY(require_operands(args, 2, {"bias", "past_state"}));
  const TensorType& x = args.inputs[0];
  const TensorType& w = args.inputs[1];
  const std::string& activation = args.attr_string("activation");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    return refuse(Code::kInvalidArgument,
                  "activation must be \"none\", \"silu\" or \"swish\", found \"", activation, "\"");
  }
  PYC_TRY(require_dtype("x", x, kFloats));
  PYC_TRY(require_rank("x", x, 3));
  PYC_TRY(require_rank("w", w, 3));
  for (const TensorType& other : args.inputs.subspan(1)) PYC_TRY(require_same_dtype(x, other));
  if (w.shape[0] != x.shape[1] || w.shape[1] != 1 || w.shape[2] < 1) {
    return refuse(Code::kShapeMismatch, "w must have shape [", x.shape[1], ",1,K], found ", w);
  }
  const Shape state{x.shape[0], x.shape[1], w.shape[2] - 1};
  const int bias = operand_at(args.attrs, 2, "bias");
  const int past = operand_at(args.attrs, 2, "past_state");
  if (bias >= 0 && args.inputs[2].shape != Shape{x.shape[1]}) {
    return refuse(Code::kShapeMismatch, "bias must have shape [", x.shape[1], "], found ",
                  args.inputs[2]);
  }
  if (past >= 0 && args.inputs[static_cast<size_t>(past)].shape != state) {
    return refuse(Code::kShapeMismatch, "past_state must have shape ", state, ", found ",
                  args.inputs[static_cast<size_t>(past)]);
  }
  return std::vector<TensorType>{x, {x.dtype, state}};
}

// The element at `place` of past and x joined, as stored; 0 where there is no past.
Expr joined(LowerContext& context, std::span<const Expr> index, Expr place) {
  const TensorType& x = context.input_type(0);
  const int64_t past_length = context.input_type(1).shape[2] - 1;
  const int past = operand_at(context.node().attrs, 2, "past_state");
  Index at{index[0], index[1], place - context.index(past_length)};
  const Expr now =
      context.input_if(0, at, between(context, place, past_length, past_length + x.shape[2]),
                       zero(context, x.dtype));
  if (past < 0) return now;
  at[2] = place;
  return context.input_if(past, at, lt(place, context.index(past_length)), now);
}

Expr lower_causal_conv_with_state(LowerContext& context, int output, std::span<const Expr> index) {
  const TensorType& x = context.input_type(0);
  if (output == 1) return joined(context, index, index[2] + context.index(x.shape[2]));
  const int64_t taps = context.input_type(1).shape[2];
  const bool has_past = operand_at(context.node().attrs, 2, "past_state") >= 0;
  const DType wide = compute_dtype(x.dtype);
  Expr y = context.reduce(
      loop::ReduceKind::kChain, loop::ReduceOp::kSum, {&taps, 1},
      [&](std::span<const Expr> k) {
        const Expr place = index[2] + k[0];
        const Index at_w{index[1], context.index(0), k[0]};
        ReduceTerm term{.value = convert(joined(context, index, place), wide),
                        .value2 = context.input_compute(1, at_w)};
        if (!has_past) term.guard = le(context.index(taps - 1), place);
        return term;
      },
      kChainSegment);
  if (operand_at(context.node().attrs, 2, "bias") >= 0) {
    y = y + context.input_compute(2, index.subspan(1, 1));
  }
  if (context.attr_string("activation") != "none") y = y * loop::sigmoid(y);
  return rounded(context, y);
}

Result<std::vector<ValueId>> gradient_form_causal_conv_with_state(ir::GraphBuilder& builder,
                                                                  const ir::Node& node) {
  Compose c(builder, node);
  const TensorType x = c.input_type(0);
  const int64_t past_length = c.input_type(1).shape[2] - 1;
  const int bias = operand_at(node.attrs, 2, "bias");
  const int past = operand_at(node.attrs, 2, "past_state");
  const ValueId before = past >= 0 ? c.wide_input(static_cast<size_t>(past))
                                   : c.expand(c.constant(compute_dtype(x.dtype), {}, {0.0}),
                                              {x.shape[0], x.shape[1], past_length});
  const ValueId all = c.concat({before, c.wide_input(0)}, 2);
  ValueId y = ir::kNoId;
  if (x.shape[2] == 0) {
    y = c.slice(all, 2, 0, 0);
  } else {
    std::vector<ValueId> inputs{all, c.wide_input(1)};
    if (bias >= 0) inputs.push_back(c.wide_input(static_cast<size_t>(bias)));
    y = c.op("conv", inputs, {{"group", x.shape[1]}});
    if (c.attrs().attr_string("activation") != "none") y = c.op("swish", {y});
  }
  const ValueId state = c.slice(all, 2, x.shape[2], x.shape[2] + past_length);
  return c.outputs({c.cast(y, x.dtype), c.cast(state, x.dtype)});
}

Result<ValueId> draw_causal_conv_with_state(Draw& d, DType t) {
  const int64_t b = d.pick(1, 2);
  const int64_t channels = d.pick(1, 3);
  const int64_t k = d.pick(1, 4);
  DrawnOperands o{{d.tensor(t, {b, channels, d.pick(1, 6)}), d.tensor(t, {channels, 1, k})}, ""};
  if (d.flip()) o.add("bias", d.tensor(t, {channels}));
  if (d.flip()) o.add("past_state", d.tensor(t, {b, channels, k - 1}));
  return d.op(std::move(o.inputs),
              {{"with", o.with}, {"activation", d.word({"none", "silu", "swish"})}});
}

}  // namespace

const ir::OpDef& op_causal_conv_with_state() {
  static const ir::OpDef def{
      .name = "causal_conv_with_state",
      .summary =
          "Depthwise convolution of each channel's past, then silu on demand; and the last inputs "
          "as state.",
      .min_inputs = 2,
      .max_inputs = 4,
      .outputs = 2,
      .attrs = {with_attr(), optional("activation", std::string("none"))},
      .infer = infer_causal_conv_with_state,
      .lower = lower_causal_conv_with_state,
      .gradient_form = gradient_form_causal_conv_with_state,
      .onnx = {.name = "CausalConvWithState",
               .attrs = "activation",
               .since = 27,
               .dtypes = "f16 bf16 f32",
               .optional = "bias past_state"},
      .draw = {.node = draw_causal_conv_with_state},
  };
  return def;
}

}  // namespace pyc::ops
