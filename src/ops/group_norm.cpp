#include "ops/support/draws.h"
#include "ops/support/norms.h"

namespace pyc::ops {
namespace {

constexpr std::string_view kGroupNormNames[] = {"x", "gamma", "beta"};

Types infer_group_norm(const InferArgs& args) {
  PYC_ASSIGN(auto types, infer_channel_norm(args, kGroupNormNames, 2));
  const int64_t groups = args.attr_int("num_groups");
  if (groups < 1 || types[0].shape[1] % groups != 0) {
    return refuse(Code::kInvalidArgument, "num_groups ", groups, " must divide the ",
                  types[0].shape[1], " channels of ", types[0]);
  }
  return types;
}

Result<std::vector<ValueId>> decompose_group_norm(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const TensorType type = c.input_type(0);
  const int64_t groups = c.attrs().attr_int("num_groups");
  int64_t members = type.shape[1] / groups;
  for (size_t i = 2; i < type.shape.size(); ++i) members *= type.shape[i];
  const ValueId x = c.reshape(c.wide_input(0), {type.shape[0], groups, members});
  const Moments m = moments(c, x, {2});
  const ValueId r = inverse_deviation(c, m.var, c.attrs().attr_float("epsilon"));
  const ValueId normal = c.reshape(c.mul(m.centred, r), type.shape);
  const ValueId y = c.add(c.mul(normal, channel_input(c, 1)), channel_input(c, 2));
  return c.outputs({c.cast(y, type.dtype)});
}

Result<ValueId> draw_group_norm(Draw& d, DType t) {
  const int64_t groups = d.pick(1, 3);
  return d.op(drawn_channels(d, t, 2, groups * d.pick(1, 3)), {{"num_groups", groups}});
}

}  // namespace

const ir::OpDef& op_group_norm() {
  static const ir::OpDef def{
      .name = "group_norm",
      .summary =
          "((x-mean)*r)*gamma + beta with r = 1/sqrt(var+epsilon), mean and var per sample and "
          "group of channels.",
      .min_inputs = 3,
      .max_inputs = 3,
      .attrs = {optional("epsilon", 1e-5), required("num_groups", ir::AttrKind::kInt)},
      .infer = infer_group_norm,
      .decompose = decompose_group_norm,
      .onnx = {.name = "GroupNormalization", .attrs = "epsilon num_groups", .since = 21},
      .draw = {.node = draw_group_norm},
  };
  return def;
}

}  // namespace pyc::ops
