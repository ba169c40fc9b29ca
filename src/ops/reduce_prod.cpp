#include "ops/support/elementwise.h"
#include "ops/support/reduce.h"

namespace pyc::ops {
namespace {

Expr lower_reduce_prod(LowerContext& context, int, std::span<const Expr> index) {
  return rounded(context, total_axes(context, loop::ReduceOp::kProd, index));
}

}  // namespace

const ir::OpDef& op_reduce_prod() {
  static const ir::OpDef def{
      .name = "reduce_prod",
      .summary = "The canonical product over axes (none given: all); 1 for no elements.",
      .attrs = reduce_attrs(),
      .infer = [](const InferArgs& args) { return infer_reduce(args, kNumbers); },
      .lower = lower_reduce_prod,
  };
  return def;
}

}  // namespace pyc::ops
