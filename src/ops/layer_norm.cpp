#include "ops/support/compose.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kFloats));
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  const int64_t axis = from_front(args.attr_int("axis"), x.rank());
  const Shape normalized(x.shape.begin() + axis, x.shape.end());
  for (size_t i = 1; i < args.inputs.size(); ++i) {
    const std::string_view name = i == 1 ? "gamma" : "beta";
    PYC_TRY(require_same_dtype(x, args.inputs[i]));
    if (args.inputs[i].shape == normalized) continue;
    return refuse(Code::kShapeMismatch, "", name, " must have the normalised shape ", normalized,
                  ", found ", args.inputs[i]);
  }
  return one(x.dtype, x.shape);
}

Result<std::vector<ValueId>> decompose(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  Ints axes;
  const int64_t rank = c.input_type(0).rank();
  const int64_t axis = from_front(std::get<int64_t>(node.attrs.at("axis")), rank);
  for (int64_t i = axis; i < rank; ++i) axes.push_back(i);

  const ValueId x = c.wide_input(0);
  const ValueId centred = c.op("sub", {x, c.op("reduce_mean", {x}, {{"axes", axes}})});
  const ValueId square = c.op("mul", {centred, centred});
  const ValueId var = c.op("reduce_mean", {square}, {{"axes", axes}});
  const ValueId gamma = c.wide_input(1);
  const ValueId beta = node.inputs.size() > 2 ? c.wide_input(2) : ir::kNoId;
  const double epsilon = std::get<double>(node.attrs.at("epsilon"));
  const ValueId y = normalize(c, centred, var, epsilon, gamma, beta);
  return c.outputs({c.cast(y, c.input_type(0).dtype)});
}

}  // namespace

const ir::OpDef& op_layer_norm() {
  static const ir::OpDef def{
      .name = "layer_norm",
      .summary = "((x-mean)/sqrt(var+epsilon))*gamma (+ beta) over the axes from `axis` on.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = {optional("axis", int64_t{-1}), optional("epsilon", 1e-5)},
      .infer = infer,
      .decompose = decompose,
  };
  return def;
}

}  // namespace pyc::ops
