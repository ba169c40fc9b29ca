#include "ops/support/elementwise.h"
#include "ops/support/reduce.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Expr lower_reduce_mean(LowerContext& context, int, std::span<const Expr> index) {
  const auto n = static_cast<double>(reduced_elements(context));
  return rounded(context, total_axes(context, loop::ReduceOp::kSum, index) / n);
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
  };
  return def;
}

}  // namespace pyc::ops
