#include "ops/draw.h"
#include "ops/support/backward.h"
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

ValueId gradient_mean_variance_normalization(Backward& b) {
  // As for any norm; 0 through the deviation where that is 0.
  const Moments m = moments(b, b.x(), b.attrs().attr_ints("axes"));
  const ir::Attrs axes{{"axes", b.attrs().attr_ints("axes")}};
  const ValueId none = b.is(m.var, 0.0);
  const ValueId deviation = b.fn("sqrt", b.where(none, b.scalar_like(m.var, 1.0), m.var));
  const ValueId divisor = b.shift(b.except(none, deviation), 1e-9);
  const ValueId share = b.div(b.g(), divisor);
  const ValueId along = b.op("reduce_mean", {b.mul(share, m.centred)}, axes);
  const ValueId bend = b.except(none, b.div(along, b.mul(divisor, deviation)));
  const ValueId of_centred = b.sub(share, b.mul(m.centred, bend));
  return b.sub(of_centred, b.op("reduce_mean", {of_centred}, axes));
}

Result<ValueId> draw_mean_variance_normalization(Draw& d, DType t) {
  const Shape shape = d.shape();
  return d.op({d.tensor(t, shape)}, {{"axes", d.axes(std::ssize(shape))}});
}

}  // namespace

const ir::OpDef& op_mean_variance_normalization() {
  static const ir::OpDef def{
      .name = "mean_variance_normalization",
      .summary = "(x-mean) / (sqrt(var) + 1e-9) over axes.",
      .attrs = {optional("axes", Ints{0, 2, 3})},
      .infer = infer_mean_variance_normalization,
      .decompose = decompose_mean_variance_normalization,
      .gradient = gradient_of_one<gradient_mean_variance_normalization>,
      .onnx = {.name = "MeanVarianceNormalization", .attrs = "axes", .dtypes = "f32"},
      .draw = {.node = draw_mean_variance_normalization},
  };
  return def;
}

}  // namespace pyc::ops
