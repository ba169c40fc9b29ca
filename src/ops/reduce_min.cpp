#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
#include "ops/support/reduce.h"
#include "ops/support/reduce_gradient.h"

namespace pyc::ops {
namespace {

Expr lower_reduce_min(LowerContext& context, int, std::span<const Expr> index) {
  return rounded(context, extreme_axes(context, loop::ReduceOp::kMin, index));
}

ValueId gradient_reduce_min(Backward& b) { return to_extremes(b); }

}  // namespace

const ir::OpDef& op_reduce_min() {
  static const ir::OpDef def{
      .name = "reduce_min",
      .summary = "The smallest over axes (none given: all); +inf or the largest value for none.",
      .attrs = reduce_attrs(),
      .infer = [](const InferArgs& args) { return infer_reduce(args, kAnyDType); },
      .lower = lower_reduce_min,
      .gradient = gradient_of_one<gradient_reduce_min>,
      .draw = {.node = draw_reduce},
  };
  return def;
}

}  // namespace pyc::ops
