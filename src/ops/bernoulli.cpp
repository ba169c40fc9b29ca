#include "ops/draw.h"
#include "ops/support/random.h"

namespace pyc::ops {
namespace {

Types infer_bernoulli(const InferArgs& args) {
  const TensorType& p = args.inputs[0];
  PYC_TRY(check_drawn_before(args, 1));
  PYC_TRY(require_dtype("p", p, kFloats));
  return one(args.attr_dtype("dtype"), p.shape);
}

Expr lower_bernoulli(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& y = context.output_type(0);
  const Expr p = convert(context.input(0, index), DType::kF64);
  const Expr u = random_unit(context, drawn_position(context, index, 1));
  const auto value = [&](int64_t v) { return loop::constant_int(context.pool(), y.dtype, v); };
  return select(lt(u, p), value(1), value(0));
}

Result<ValueId> draw_bernoulli(Draw& d, DType t) {
  const DType to = d.any_dtype();
  return d.op({d.tensor_in(t, d.shape(), 0.0, 1.0)},
              {{"dtype", to}, {"seed", d.pick(0, 99)}, {"stream", d.pick(0, 3)}});
}

}  // namespace

const ir::OpDef& op_bernoulli() {
  static const ir::OpDef def{
      .name = "bernoulli",
      .summary = "1 where u < p, else 0; u in [0,1) from Philox by seed, stream and element index.",
      .max_inputs = 2,
      .attrs = random_attrs({required("dtype", ir::AttrKind::kDType)}),
      .infer = infer_bernoulli,
      .lower = lower_bernoulli,
      .traits = {.random = true},
      .no_gradient = "it draws",
      .draw = {.node = draw_bernoulli, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
