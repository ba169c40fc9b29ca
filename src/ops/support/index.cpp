#include "ops/support/index.h"

#include <algorithm>
#include <limits>

namespace pyc::ops {

Index broadcast_index(LowerContext& context, std::span<const Expr> index, const ir::Shape& shape) {
  const size_t skipped = index.size() - shape.size();
  Index result;
  for (size_t i = 0; i < shape.size(); ++i) {
    result.push_back(shape[i] == 1 ? context.index(0) : index[skipped + i]);
  }
  return result;
}

Expr position(LowerContext& context, std::span<const Expr> index, const ir::Shape& shape) {
  const ir::Shape strides = ir::strides_of(shape);
  Expr sum = context.index(0);
  for (size_t i = 0; i < shape.size(); ++i) sum = sum + index[i] * context.index(strides[i]);
  return sum;
}

Index index_at(LowerContext& context, Expr position, const ir::Shape& shape) {
  Index result(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    const int64_t dim = std::max<int64_t>(shape[i], 1);
    result[i] = floor_mod(floor_div(position, context.index(stride)), context.index(dim));
    stride *= dim;
  }
  return result;
}

Expr same_position(LowerContext& context, int output, std::span<const Expr> index) {
  const Expr at = position(context, index, context.output_type(output).shape);
  return context.input(0, index_at(context, at, context.input_type(0).shape));
}

Expr checked_index(LowerContext& context, int i, Expr wanted, int64_t dim, int64_t nth,
                   int64_t every) {
  wanted = convert(wanted, DType::kI64);
  const Expr first = context.index(0);
  const Expr found = select(lt(wanted, first), wanted + context.index(dim), wanted);
  const Accepted accepted{
      .first = -dim, .last = dim - 1, .also = -dim, .begin = nth, .step = every};
  context.check_input(i, between(context, found, 0, dim), accepted, "index");
  // After a failed check the run goes on to its end, so that the access must stay in bounds.
  return min(max(found, first), context.index(std::max<int64_t>(dim - 1, 0)));
}

Expr between(LowerContext& context, Expr i, int64_t lo, int64_t hi) {
  return le(context.index(lo), i) & lt(i, context.index(hi));
}

bool always(Expr condition) {
  const loop::ExprNode& node = condition.pool->node(condition.id);
  return node.op == loop::Op::kConst && node.word != 0;
}

Expr lowest(LowerContext& context, DType t) {
  // Converting saturates, so -inf is also the smallest integer.
  return loop::constant(context.pool(), t, -std::numeric_limits<double>::infinity());
}

Expr highest(LowerContext& context, DType t) {
  return loop::constant(context.pool(), t, std::numeric_limits<double>::infinity());
}

}  // namespace pyc::ops
