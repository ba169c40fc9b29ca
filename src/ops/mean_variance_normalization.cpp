#include "ops/support/norms.h"

namespace pyc::ops {
namespace {

Types infer_mean_variance_normalization(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("input", x, kFloats));
  PYC_TRY(require_axes(args.attr_ints("axes"), x));
  return one(x.dtype, x.shape);
}

Result<std::vector<ValueId>> decompose_mean_variance_normalization(ir::GraphBuilder& builder,
                                                                   const ir::Node& node) {
  Compose c(builder, node);
  constexpr double kEpsilon = 1e-9;
  const Moments m = moments(c, c.wide_input(0), c.attrs().attr_ints("axes"));
  const ValueId y = c.div(m.centred, c.shift(c.op("sqrt", {m.var}), kEpsilon));
  return c.outputs({c.cast(y, c.input_type(0).dtype)});
}

}  // namespace

const ir::OpDef& op_mean_variance_normalization() {
  static const ir::OpDef def{
      .name = "mean_variance_normalization",
      .summary = "(x-mean) / (sqrt(var) + 1e-9) over axes.",
      .attrs = {optional("axes", Ints{0, 2, 3})},
      .infer = infer_mean_variance_normalization,
      .decompose = decompose_mean_variance_normalization,
  };
  return def;
}

}  // namespace pyc::ops
