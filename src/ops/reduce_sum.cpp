#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
#include "ops/support/reduce.h"
#include "ops/support/reduce_gradient.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Expr lower_reduce_sum(LowerContext& context, int, std::span<const Expr> index) {
  return rounded(context, total_axes(context, loop::ReduceOp::kSum, index));
}

ValueId gradient_reduce_sum(Backward& b) { return spread(b, b.g()); }

}  // namespace

const ir::OpDef& op_reduce_sum() {
  static const ir::OpDef def{
      .name = "reduce_sum",
      .summary = "The canonical sum over axes (none given: all); 0 for no elements.",
      .attrs = reduce_attrs(),
      .infer = [](const InferArgs& args) { return infer_reduce(args, kNumbers); },
      .lower = lower_reduce_sum,
      .canonical_attrs = canonical_axes,
      .gradient = gradient_of_one<gradient_reduce_sum>,
      .draw = {.node = draw_reduce},
  };
  return def;
}

}  // namespace pyc::ops
