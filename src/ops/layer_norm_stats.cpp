#include "ops/support/draws.h"
#include "ops/support/norms.h"

namespace pyc::ops {
namespace {

Types infer_layer_norm_stats(const InferArgs& args) {
  PYC_ASSIGN(auto types, infer_along_axis(args, kFloats));
  types[0].dtype = compute_dtype(types[0].dtype);
  for (int64_t i : axes_from(args.attr_int("axis"), types[0].rank())) {
    types[0].shape[static_cast<size_t>(i)] = 1;
  }
  types.push_back(types[0]);
  return types;
}

Result<std::vector<ValueId>> decompose_layer_norm_stats(ir::GraphBuilder& builder,
                                                        const ir::Node& node) {
  Compose c(builder, node);
  const Ints axes = axes_from(c.attrs().attr_int("axis"), c.input_type(0).rank());
  const Moments m = moments(c, c.wide_input(0), axes);
  return c.outputs({m.mean, inverse_deviation(c, m.var, c.attrs().attr_float("epsilon"))});
}

}  // namespace

const ir::OpDef& op_layer_norm_stats() {
  static const ir::OpDef def{
      .name = "layer_norm_stats",
      .summary =
          "What layer_norm subtracts and multiplies by, for training: mean and r = "
          "1/sqrt(var+epsilon), in f32 or f64.",
      .outputs = 2,
      .attrs = {optional("axis", int64_t{-1}), optional("epsilon", 1e-5)},
      .infer = infer_layer_norm_stats,
      .decompose = decompose_layer_norm_stats,
      .draw = {.node = draw_along},
  };
  return def;
}

}  // namespace pyc::ops
