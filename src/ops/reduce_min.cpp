#include "ops/support/elementwise.h"
#include "ops/support/reduce.h"

namespace pyc::ops {
namespace {

Expr lower_reduce_min(LowerContext& context, int, std::span<const Expr> index) {
  return rounded(context, extreme_axes(context, loop::ReduceOp::kMin, index));
}

}  // namespace

const ir::OpDef& op_reduce_min() {
  static const ir::OpDef def{
      .name = "reduce_min",
      .summary = "The smallest over axes (none given: all); +inf or the largest value for none.",
      .attrs = reduce_attrs(),
      .infer = [](const InferArgs& args) { return infer_reduce(args, kAnyDType); },
      .lower = lower_reduce_min,
  };
  return def;
}

}  // namespace pyc::ops
