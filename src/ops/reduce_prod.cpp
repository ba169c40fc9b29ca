#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
#include "ops/support/reduce.h"
#include "ops/support/reduce_gradient.h"

namespace pyc::ops {
namespace {

Expr lower_reduce_prod(LowerContext& context, int, std::span<const Expr> index) {
  return rounded(context, total_axes(context, loop::ReduceOp::kProd, index));
}

ValueId gradient_reduce_prod(Backward& b) {
  // The product of the others, as those before times those behind: right with zeros too.
  const ValueId rows = reduced_rows(b);
  const auto others = [&](bool behind) {
    return b.op("cumprod", {rows},
                {{"axis", int64_t{1}}, {"exclusive", true}, {"reverse", behind}});
  };
  const ValueId g = b.reshape(b.g(), {b.type(b.g()).elements(), 1});
  return rows_back(b, b.mul(g, b.mul(others(false), others(true))));
}

}  // namespace

const ir::OpDef& op_reduce_prod() {
  static const ir::OpDef def{
      .name = "reduce_prod",
      .summary = "The canonical product over axes (none given: all); 1 for no elements.",
      .attrs = reduce_attrs(),
      .infer = [](const InferArgs& args) { return infer_reduce(args, kNumbers); },
      .lower = lower_reduce_prod,
      .gradient = gradient_of_one<gradient_reduce_prod>,
      .draw = {.node = draw_reduce},
  };
  return def;
}

}  // namespace pyc::ops
