#include "ops/support/arg.h"
#include "ops/support/draws.h"

namespace pyc::ops {
namespace {

Expr lower_argmin(LowerContext& context, int, std::span<const Expr> index) {
  return arg_reduce(context, loop::ReduceOp::kMin, index);
}

}  // namespace

const ir::OpDef& op_argmin() {
  static const ir::OpDef def{
      .name = "argmin",
      .summary =
          "Index of the smallest element along an axis, the first or last of equal ones; NaN wins.",
      .attrs = arg_attrs(),
      .infer = infer_arg,
      .lower = lower_argmin,
      .no_gradient = "its result is an index",
      .onnx = {.name = "ArgMin", .attrs = "axis keepdims select_last_index=select_last"},
      .draw = {.node = draw_arg, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
