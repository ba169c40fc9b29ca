#include "ops/support/draws.h"
#include "ops/support/norms.h"

namespace pyc::ops {
namespace {

constexpr std::string_view kTrainingNames[] = {"x", "gamma", "beta", "mean", "var"};

Types infer_batch_norm_training(const InferArgs& args) {
  PYC_ASSIGN(auto types, infer_channel_norm(args, kTrainingNames, 2));
  types.push_back(args.inputs[3]);
  types.push_back(args.inputs[4]);
  return types;
}

// old * momentum + now * (1 - momentum), as input i is typed.
ValueId running(Compose& c, size_t i, ValueId now) {
  const double momentum = c.attrs().attr_float("momentum");
  const ValueId fresh = c.reshape(now, c.input_type(i).shape);
  const ValueId mixed = c.add(c.scale(c.wide_input(i), momentum), c.scale(fresh, 1.0 - momentum));
  return c.cast(mixed, c.input_type(i).dtype);
}

Result<std::vector<ValueId>> decompose_batch_norm_training(ir::GraphBuilder& builder,
                                                           const ir::Node& node) {
  Compose c(builder, node);
  const TensorType type = c.input_type(0);
  Ints axes{0};
  for (int64_t i = 2; i < type.rank(); ++i) axes.push_back(i);
  const Moments m = moments(c, c.wide_input(0), axes);
  const double epsilon = c.attrs().attr_float("epsilon");
  const ValueId y =
      normalize(c, m.centred, m.var, epsilon, channel_input(c, 1), channel_input(c, 2));
  return c.outputs({c.cast(y, type.dtype), running(c, 3, m.mean), running(c, 4, m.var)});
}

Result<ValueId> draw_batch_norm_training(Draw& d, DType t) {
  return d.op(drawn_channels(d, t, 4, d.pick(1, 5)), {{"momentum", 0.75}});
}

}  // namespace

const ir::OpDef& op_batch_norm_training() {
  static const ir::OpDef def{
      .name = "batch_norm_training",
      .summary =
          "batch_norm by the batch's own mean and var; then both mixed: old*momentum + "
          "new*(1-momentum).",
      .min_inputs = 5,
      .max_inputs = 5,
      .outputs = 3,
      .attrs = {optional("epsilon", 1e-5), optional("momentum", 0.9)},
      .infer = infer_batch_norm_training,
      .decompose = decompose_batch_norm_training,
      .traits = {.learnt_inputs = 3},
      .draw = {.node = draw_batch_norm_training},
  };
  return def;
}

}  // namespace pyc::ops
