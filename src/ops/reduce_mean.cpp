#include <algorithm>

#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
#include "ops/support/reduce.h"
#include "ops/support/reduce_gradient.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Expr lower_reduce_mean(LowerContext& context, int, std::span<const Expr> index) {
  const auto n = static_cast<double>(reduced_elements(context));
  return rounded(context, total_axes(context, loop::ReduceOp::kSum, index) / n);
}

ValueId gradient_reduce_mean(Backward& b) {
  const auto n = static_cast<double>(b.input_type(0).elements()) /
                 static_cast<double>(std::max<int64_t>(b.type(b.g()).elements(), 1));
  return spread(b, b.div(b.g(), b.scalar_like(b.g(), n)));
}

}  // namespace

const ir::OpDef& op_reduce_mean() {
  static const ir::OpDef def{
      .name = "reduce_mean",
      .summary = "The canonical sum over axes (none given: all) divided by the number of elements.",
      .attrs = reduce_attrs(),
      .infer = [](const InferArgs& args) { return infer_reduce(args, kFloats); },
      .lower = lower_reduce_mean,
      .canonical_attrs = canonical_axes,
      .gradient = gradient_of_one<gradient_reduce_mean>,
      .draw = {.node = draw_reduce},
  };
  return def;
}

}  // namespace pyc::ops
