#include "ops/support/elementwise.h"
#include "ops/support/window.h"

namespace pyc::ops {
namespace {

Expr lower(LowerContext& context, int, std::span<const Expr> index) {
  const Window window = pool_window(context);
  const DType wide = compute_dtype(context.input_type(0).dtype);
  const auto term = [&](std::span<const Expr> k) {
    const Tap tap = tap_at(context, window, index[2], index[3], k[0], k[1]);
    const Expr x = context.input_if(0, Index{index[0], index[1], tap.h, tap.w}, tap.inside,
                                    zero(context, context.input_type(0).dtype));
    return ReduceTerm{.value = convert(x, wide), .guard = always(tap.inside) ? Expr{} : tap.inside};
  };
  return rounded(
      context, context.reduce(loop::ReduceKind::kExact, loop::ReduceOp::kMax, window.kernel, term));
}

}  // namespace

const ir::OpDef& op_max_pool2d() {
  static const ir::OpDef def{
      .name = "max_pool2d",
      .summary = "The largest of each window of x (NCHW); padding never wins.",
      .attrs = pool_attrs(),
      .infer = [](const InferArgs& args) { return infer_pool(args, kNumbers); },
      .lower = lower,
  };
  return def;
}

}  // namespace pyc::ops
