#include "ops/support/draws.h"
#include "ops/support/norms.h"

namespace pyc::ops {
namespace {

constexpr std::string_view kNames[] = {"x", "gamma", "beta", "mean", "var"};

Result<std::vector<ValueId>> decompose_batch_norm(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const ValueId gamma = channel_input(c, 1);
  const ValueId beta = channel_input(c, 2);
  const ValueId centred = c.sub(c.wide_input(0), channel_input(c, 3));
  const double epsilon = c.attrs().attr_float("epsilon");
  const ValueId y = normalize(c, centred, channel_input(c, 4), epsilon, gamma, beta);
  return c.outputs({c.cast(y, c.input_type(0).dtype)});
}

Result<ValueId> draw_batch_norm(Draw& d, DType t) {
  return d.op(drawn_channels(d, t, 4, d.pick(1, 5)));
}

}  // namespace

const ir::OpDef& op_batch_norm() {
  static const ir::OpDef def{
      .name = "batch_norm",
      .summary =
          "((x-mean)*r)*gamma + beta with r = 1/sqrt(var+epsilon), per channel (axis 1); inference "
          "only.",
      .min_inputs = 5,
      .max_inputs = 5,
      .attrs = {optional("epsilon", 1e-5)},
      .infer = [](const InferArgs& args) { return infer_channel_norm(args, kNames, 2); },
      .decompose = decompose_batch_norm,
      .traits = {.learnt_inputs = 3},
      .onnx = {.name = "BatchNormalization", .attrs = "epsilon"},
      .draw = {.node = draw_batch_norm},
  };
  return def;
}

}  // namespace pyc::ops
