#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
#include "ops/support/reduce.h"
#include "ops/support/reduce_gradient.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Expr lower_reduce_max(LowerContext& context, int, std::span<const Expr> index) {
  return rounded(context, extreme_axes(context, loop::ReduceOp::kMax, index));
}

ValueId gradient_reduce_max(Backward& b) { return to_extremes(b); }

}  // namespace

const ir::OpDef& op_reduce_max() {
  static const ir::OpDef def{
      .name = "reduce_max",
      .summary = "The largest over axes (none given: all); -inf or the smallest value for none.",
      .attrs = reduce_attrs(),
      .infer = [](const InferArgs& args) { return infer_reduce(args, kAnyDType); },
      .lower = lower_reduce_max,
      .canonical_attrs = canonical_axes,
      .gradient = gradient_of_one<gradient_reduce_max>,
      .draw = {.node = draw_reduce},
  };
  return def;
}

}  // namespace pyc::ops
