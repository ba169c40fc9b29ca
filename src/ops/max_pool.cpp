#include "ops/support/elementwise.h"
#include "ops/support/window.h"

namespace pyc::ops {
namespace {

Expr lower_max_pool(LowerContext& context, int, std::span<const Expr> index) {
  const Window window = pool_window(context);
  const auto term = [&](std::span<const Expr> k) { return pool_term(context, window, index, k); };
  return rounded(
      context, context.reduce(loop::ReduceKind::kExact, loop::ReduceOp::kMax, window.kernel, term));
}

}  // namespace

const ir::OpDef& op_max_pool() {
  static const ir::OpDef def{
      .name = "max_pool",
      .summary =
          "The largest of each window of x (NC, planes); padding never wins, a window of "
          "padding only gives the lowest value.",
      .attrs = pool_attrs(),
      .infer = [](const InferArgs& args) { return infer_pool(args, kNumbers); },
      .lower = lower_max_pool,
  };
  return def;
}

}  // namespace pyc::ops
