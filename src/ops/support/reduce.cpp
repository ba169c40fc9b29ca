#include "ops/support/reduce.h"

namespace pyc::ops {
namespace {

// For each dim, whether it is reduced.
std::vector<bool> reduced_dims(const Ints& axes, int64_t rank) {
  std::vector<bool> reduced(static_cast<size_t>(rank), axes.empty());
  for (int64_t axis : axes) reduced[static_cast<size_t>(from_front(axis, rank))] = true;
  return reduced;
}

}  // namespace

std::vector<ir::AttrDef> reduce_attrs() {
  return {optional("axes", Ints{}), optional("keepdims", true)};
}

Types infer_reduce(const InferArgs& args, const DTypeClass& accepted) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("input", x, accepted));
  const Ints& axes = args.attr_ints("axes");
  PYC_TRY(require_axes(axes, x));
  const std::vector<bool> reduced = reduced_dims(axes, x.rank());
  Shape shape;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (!reduced[i]) shape.push_back(x.shape[i]);
    if (reduced[i] && args.attr_bool("keepdims")) shape.push_back(1);
  }
  return one(x.dtype, std::move(shape));
}

Expr reduce_axes(LowerContext& context, loop::ReduceKind kind, loop::ReduceOp op,
                 std::span<const Expr> index) {
  const Shape& shape = context.input_type(0).shape;
  const auto reduced = reduced_dims(context.attr_ints("axes"), static_cast<int64_t>(shape.size()));
  const bool keepdims = context.attr_bool("keepdims");
  std::vector<int64_t> extents;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (reduced[i]) extents.push_back(shape[i]);
  }
  return context.reduce(kind, op, extents, [&](std::span<const Expr> inner) {
    Index at;
    size_t next_inner = 0;
    size_t next_outer = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      at.push_back(reduced[i] ? inner[next_inner++] : index[next_outer]);
      if (!reduced[i] || keepdims) ++next_outer;
    }
    return ReduceTerm{.value = context.input_compute(0, at)};
  });
}

Expr total_axes(LowerContext& context, loop::ReduceOp op, std::span<const Expr> index) {
  const bool tree = is_float(context.input_type(0).dtype);
  return reduce_axes(context, tree ? loop::ReduceKind::kTree : loop::ReduceKind::kExact, op, index);
}

Expr extreme_axes(LowerContext& context, loop::ReduceOp op, std::span<const Expr> index) {
  const DType t = compute_dtype(context.input_type(0).dtype);
  const bool largest = op == loop::ReduceOp::kMax;
  if (reduced_elements(context) == 0) {
    if (t == DType::kBool) return loop::constant_int(context.pool(), t, largest ? 0 : 1);
    return largest ? lowest(context, t) : highest(context, t);
  }
  if (t == DType::kBool) op = largest ? loop::ReduceOp::kOr : loop::ReduceOp::kAnd;
  return reduce_axes(context, loop::ReduceKind::kExact, op, index);
}

int64_t reduced_elements(const LowerContext& context) {
  const Shape& shape = context.input_type(0).shape;
  const auto reduced = reduced_dims(context.attr_ints("axes"), static_cast<int64_t>(shape.size()));
  int64_t n = 1;
  for (size_t i = 0; i < shape.size(); ++i) n *= reduced[i] ? shape[i] : 1;
  return n;
}

}  // namespace pyc::ops
