#include "ops/support/draws.h"
#include "ops/support/norms.h"

namespace pyc::ops {
namespace {

Types infer_rms_norm(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& gamma = args.inputs[1];
  PYC_TRY(require_dtype("x", x, kFloats));
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  PYC_TRY(require_same_dtype(x, gamma));
  const auto joined = ir::broadcast_shapes(x.shape, gamma.shape);
  if (!joined.ok() || *joined != x.shape) {
    return refuse(Code::kShapeMismatch, "gamma ", gamma, " does not broadcast to x ", x);
  }
  return one(x.dtype, x.shape);
}

Result<std::vector<ValueId>> decompose_rms_norm(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const TensorType type = c.input_type(0);
  const ValueId x = c.wide_input(0);
  const Ints axes = axes_from(c.attrs().attr_int("axis"), type.rank());
  const ValueId power = c.op("reduce_mean", {c.mul(x, x)}, {{"axes", axes}});
  const ValueId y = normalize(c, x, power, c.attrs().attr_float("epsilon"), c.wide_input(1));
  return c.outputs({c.cast(y, type.dtype)});
}

Result<ValueId> draw_rms_norm(Draw& d, DType t) {
  const Shape shape = d.shape(1);
  const int64_t axis = d.axis(std::ssize(shape));
  return d.op({d.tensor(t, shape), d.tensor(t, dims_from(shape, axis))}, {{"axis", axis}});
}

}  // namespace

const ir::OpDef& op_rms_norm() {
  static const ir::OpDef def{
      .name = "rms_norm",
      .summary = "(x*r)*gamma with r = 1/sqrt(mean(x*x)+epsilon), over the axes from `axis` on.",
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {optional("axis", int64_t{-1}), optional("epsilon", 1e-5)},
      .infer = infer_rms_norm,
      .decompose = decompose_rms_norm,
      .onnx = {.name = "RMSNormalization", .attrs = "axis epsilon", .since = 23},
      .draw = {.node = draw_rms_norm},
  };
  return def;
}

}  // namespace pyc::ops
