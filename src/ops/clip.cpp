#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Types infer_clip(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kNumbers));
  for (const size_t i : {size_t{1}, size_t{2}}) {
    PYC_TRY(require_same_dtype(x, args.inputs[i]));
    PYC_TRY(require_rank(i == 1 ? "lo" : "hi", args.inputs[i], 0));
  }
  return one(x.dtype, x.shape);
}

Expr lower_clip(LowerContext& context, int, std::span<const Expr> index) {
  const Expr x = context.input_compute(0, index);
  const Expr lo = context.input_compute(1, {});
  const Expr hi = context.input_compute(2, {});
  return rounded(context, min(max(x, lo), hi));
}

Grads gradient_clip(ir::GraphBuilder& builder, const ir::Node& node,
                    std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  // All of it to x from lo to hi, both included; outside to the bound that is taken.
  const ValueId raised = b.op("max", {b.x(0), b.x(1)});
  const ValueId above = b.less(b.x(2), raised);
  const ValueId below = b.less(b.x(0), b.x(1));
  const ValueId rest = b.except(above, b.g());
  return b.outputs({b.to_input(b.except(below, rest), 0), b.to_input(b.only(below, rest), 1),
                    b.to_input(b.only(above, b.g()), 2)});
}

Result<ValueId> draw_clip(Draw& d, DType t) {
  const ValueId x = d.tensor(t, d.shape());
  if (!d.tame()) return d.op({x, d.tensor(t, {}), d.tensor(t, {})});
  return d.op({x, d.fresh(t, {}, 0.0, 1.0), d.fresh(t, {}, 1.0, 5.0)});
}

}  // namespace

const ir::OpDef& op_clip() {
  static const ir::OpDef def{
      .name = "clip",
      .summary = "min(max(x, lo), hi) with scalars lo and hi; NaN wins, hi wins over lo.",
      .min_inputs = 3,
      .max_inputs = 3,
      .infer = infer_clip,
      .lower = lower_clip,
      .traits = {.elementwise = true},
      .gradient = gradient_clip,
      .onnx = {.name = "Clip"},
      .draw = {.node = draw_clip},
  };
  return def;
}

}  // namespace pyc::ops
