#include "ops/support/elementwise.h"
#include "ops/support/window.h"

namespace pyc::ops {
namespace {

std::vector<ir::AttrDef> attrs() {
  auto result = pool_attrs();
  result.push_back(optional("count_include_pad", false));
  return result;
}

Expr lower(LowerContext& context, int, std::span<const Expr> index) {
  const Window window = pool_window(context);
  const DType t = context.input_type(0).dtype;
  const auto term = [&](std::span<const Expr> k) {
    const Tap tap = tap_at(context, window, index[2], index[3], k[0], k[1]);
    const Expr x =
        context.input_if(0, Index{index[0], index[1], tap.h, tap.w}, tap.inside, zero(context, t));
    return ReduceTerm{.value = convert(x, compute_dtype(t)),
                      .guard = always(tap.inside) ? Expr{} : tap.inside};
  };
  const Expr sum =
      context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum, window.kernel, term);
  const Expr count = context.attr_bool("count_include_pad")
                         ? context.index(window.kernel[0] * window.kernel[1])
                         : count_taps(context, window, index[2], index[3]);
  return rounded(context, sum / convert(count, compute_dtype(t)));
}

}  // namespace

const ir::OpDef& op_avg_pool2d() {
  static const ir::OpDef def{
      .name = "avg_pool2d",
      .summary = "The average of each window of x (NCHW): taps added in order, one division.",
      .attrs = attrs(),
      .infer = [](const InferArgs& args) { return infer_pool(args, kFloats); },
      .lower = lower,
  };
  return def;
}

}  // namespace pyc::ops
