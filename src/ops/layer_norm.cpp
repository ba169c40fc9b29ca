#include "ops/support/draws.h"
#include "ops/support/norms.h"

namespace pyc::ops {
namespace {

Types infer_layer_norm(const InferArgs& args) {
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

Result<std::vector<ValueId>> decompose_layer_norm(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const TensorType type = c.input_type(0);
  const Moments m = moments(c, c.wide_input(0), axes_from(c.attrs().attr_int("axis"), type.rank()));
  const ValueId gamma = c.wide_input(1);
  const ValueId beta = c.inputs() > 2 ? c.wide_input(2) : ir::kNoId;
  const ValueId y = normalize(c, m.centred, m.var, c.attrs().attr_float("epsilon"), gamma, beta);
  return c.outputs({c.cast(y, type.dtype)});
}

Result<ValueId> draw_layer_norm(Draw& d, DType t) {
  const Shape shape = d.shape(1);
  const int64_t axis = d.axis(std::ssize(shape));
  std::vector<ValueId> inputs{d.tensor(t, shape), d.tensor(t, dims_from(shape, axis))};
  if (d.flip()) inputs.push_back(d.tensor(t, dims_from(shape, axis)));
  return d.op(std::move(inputs), {{"axis", axis}});
}

}  // namespace

const ir::OpDef& op_layer_norm() {
  static const ir::OpDef def{
      .name = "layer_norm",
      .summary =
          "((x-mean)*r)*gamma (+ beta) with r = 1/sqrt(var+epsilon), over the axes from `axis` on.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = {optional("axis", int64_t{-1}), optional("epsilon", 1e-5)},
      .infer = infer_layer_norm,
      .decompose = decompose_layer_norm,
      .onnx = {.name = "LayerNormalization", .attrs = "axis epsilon"},
      .draw = {.node = draw_layer_norm},
  };
  return def;
}

}  // namespace pyc::ops
