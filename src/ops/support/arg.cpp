#include "ops/support/arg.h"

namespace pyc::ops {

using loop::ReduceKind;
using loop::ReduceOp;

std::vector<ir::AttrDef> arg_attrs() {
  return {optional("axis", int64_t{0}), optional("keepdims", true), optional("select_last", false)};
}

Types infer_arg(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("input", x, kNumbers));
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  const int64_t axis = from_front(args.attr_int("axis"), x.rank());
  Shape shape = x.shape;
  if (shape[static_cast<size_t>(axis)] == 0) {
    return refuse(Code::kShapeMismatch, "dim ", axis, " of ", x, " is empty");
  }
  if (args.attr_bool("keepdims")) {
    shape[static_cast<size_t>(axis)] = 1;
  } else {
    shape.erase(shape.begin() + axis);
  }
  return one(DType::kI64, std::move(shape));
}

Expr arg_reduce(LowerContext& context, ReduceOp op, std::span<const Expr> index) {
  const TensorType& x = context.input_type(0);
  const int64_t axis = from_front(context.attr_int("axis"), x.rank());
  const int64_t length = x.shape[static_cast<size_t>(axis)];
  const bool last = context.attr_bool("select_last");
  const auto element = [&](Expr k) {
    Index at = to_index(index);
    if (context.attr_bool("keepdims")) at.erase(at.begin() + axis);
    at.insert(at.begin() + axis, k);
    return context.input_compute(0, at);
  };
  const int64_t extents[] = {length};
  const Expr best = context.reduce(ReduceKind::kExact, op, extents, [&](std::span<const Expr> k) {
    return ReduceTerm{.value = element(k[0])};
  });
  return context.reduce(ReduceKind::kExact, last ? ReduceOp::kMax : ReduceOp::kMin, extents,
                        [&](std::span<const Expr> k) {
                          const Expr v = element(k[0]);
                          const Expr both_nan = ne(v, v) & ne(best, best);
                          const Expr none = context.index(last ? -1 : length);
                          return ReduceTerm{.value = select(eq(v, best) | both_nan, k[0], none)};
                        });
}

}  // namespace pyc::ops
