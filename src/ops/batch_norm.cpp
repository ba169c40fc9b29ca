#include "ops/support/compose.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer(const InferArgs& args) {
  constexpr std::string_view kNames[] = {"x", "gamma", "beta", "mean", "var"};
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kFloats));
  if (x.rank() < 2) {
    return refuse(Code::kRankMismatch, "x must have rank 2 or more, found ", x);
  }
  for (size_t i = 1; i < args.inputs.size(); ++i) {
    PYC_TRY(require_same_dtype(x, args.inputs[i]));
    if (args.inputs[i].shape == Shape{x.shape[1]}) continue;
    return refuse(Code::kShapeMismatch, "", kNames[i], " must have shape [", x.shape[1],
                  "], found ", args.inputs[i]);
  }
  return one(x.dtype, x.shape);
}

Result<std::vector<ValueId>> decompose(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const ir::TensorType type = c.input_type(0);
  Ints per_channel(static_cast<size_t>(type.rank() - 1), 1);
  per_channel[0] = type.shape[1];
  const auto parameter = [&](size_t i) {
    return c.op("reshape", {c.wide_input(i)}, {{"shape", per_channel}});
  };
  const ValueId x = c.wide_input(0);
  const ValueId gamma = parameter(1);
  const ValueId beta = parameter(2);
  const ValueId centred = c.op("sub", {x, parameter(3)});
  const double epsilon = std::get<double>(node.attrs.at("epsilon"));
  return c.outputs({c.cast(normalize(c, centred, parameter(4), epsilon, gamma, beta), type.dtype)});
}

}  // namespace

const ir::OpDef& op_batch_norm() {
  static const ir::OpDef def{
      .name = "batch_norm",
      .summary = "((x-mean)/sqrt(var+epsilon))*gamma + beta per channel (axis 1); inference only.",
      .min_inputs = 5,
      .max_inputs = 5,
      .attrs = {optional("epsilon", 1e-5)},
      .infer = infer,
      .decompose = decompose,
  };
  return def;
}

}  // namespace pyc::ops
