#include "ops/support/draws.h"
#include "ops/support/norms.h"

namespace pyc::ops {
namespace {

constexpr std::string_view kInstanceNormNames[] = {"x", "gamma", "beta"};

Result<std::vector<ValueId>> decompose_instance_norm(ir::GraphBuilder& builder,
                                                     const ir::Node& node) {
  Compose c(builder, node);
  const TensorType type = c.input_type(0);
  const Moments m = moments(c, c.wide_input(0), axes_from(2, type.rank()));
  const double epsilon = c.attrs().attr_float("epsilon");
  const ValueId y =
      normalize(c, m.centred, m.var, epsilon, channel_input(c, 1), channel_input(c, 2));
  return c.outputs({c.cast(y, type.dtype)});
}

Result<ValueId> draw_instance_norm(Draw& d, DType t) {
  return d.op(drawn_channels(d, t, 2, d.pick(1, 5), 3));
}

}  // namespace

const ir::OpDef& op_instance_norm() {
  static const ir::OpDef def{
      .name = "instance_norm",
      .summary =
          "((x-mean)*r)*gamma + beta with r = 1/sqrt(var+epsilon), mean and var per sample and "
          "channel.",
      .min_inputs = 3,
      .max_inputs = 3,
      .attrs = {optional("epsilon", 1e-5)},
      .infer =
          [](const InferArgs& args) { return infer_channel_norm(args, kInstanceNormNames, 3); },
      .decompose = decompose_instance_norm,
      .onnx = {.name = "InstanceNormalization", .attrs = "epsilon"},
      .draw = {.node = draw_instance_norm},
  };
  return def;
}

}  // namespace pyc::ops
