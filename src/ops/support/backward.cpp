#include "ops/support/backward.h"

namespace pyc::ops {

ValueId Backward::g(size_t i) {
  const ir::TensorType t = type(node_.outputs[i]);
  if (!arrives(i)) return zeros(compute_dtype(t.dtype), t.shape);
  return wide(grads_[i]);
}

ValueId Backward::sum(ValueId v, const Ints& axes, bool keepdims) {
  if (axes.empty()) return v;
  return op("reduce_sum", {v}, {{"axes", axes}, {"keepdims", keepdims}});
}

ValueId Backward::sum_to(ValueId v, const ir::Shape& shape) {
  const ir::Shape from = type(v).shape;
  if (from == shape) return v;
  const size_t new_dims = from.size() - shape.size();
  Ints axes = int_range(0, static_cast<int64_t>(new_dims));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1 && from[d + new_dims] != 1)
      axes.push_back(static_cast<int64_t>(d + new_dims));
  }
  return reshape(sum(v, axes, false), shape);
}

Ints int_range(int64_t a, int64_t b) {
  Ints result;
  for (int64_t i = a; i < b; ++i) result.push_back(i);
  return result;
}

ValueId indices_first(Backward& b, ValueId v, int64_t axis, int64_t rank) {
  const int64_t all = b.type(v).rank();
  Ints perm = int_range(axis, axis + rank);
  for (int64_t d : int_range(0, axis)) perm.push_back(d);
  for (int64_t d : int_range(axis + rank, all)) perm.push_back(d);
  return b.transpose(v, perm);
}

ValueId sum_at(Backward& b, ValueId updates, ValueId indices, int64_t axis, const Shape& shape) {
  const auto at = static_cast<size_t>(axis);
  Shape front{shape[at]};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != at) front.push_back(shape[d]);
  }
  Shape column = b.type(indices).shape;
  column.push_back(1);
  const ValueId summed = b.op(
      "scatter_nd", {b.zeros(b.type(updates).dtype, front), b.reshape(indices, column), updates},
      {{"reduction", std::string("add")}});
  Ints perm = int_range(1, axis + 1);
  perm.push_back(0);
  for (int64_t d : int_range(axis + 1, static_cast<int64_t>(shape.size()))) perm.push_back(d);
  return b.transpose(summed, perm);
}

ValueId axis_last(Backward& b, ValueId v, int64_t axis) {
  Ints perm = int_range(0, axis);
  for (int64_t d : int_range(axis + 1, b.type(v).rank())) perm.push_back(d);
  perm.push_back(axis);
  return b.transpose(v, perm);
}

ValueId axis_back(Backward& b, ValueId v, int64_t axis) {
  const int64_t rank = b.type(v).rank();
  Ints perm = int_range(0, axis);
  perm.push_back(rank - 1);
  for (int64_t d : int_range(axis, rank - 1)) perm.push_back(d);
  return b.transpose(v, perm);
}

ValueId sum_copies(Backward& b, ValueId v, size_t d, int64_t copies, bool adjacent) {
  if (copies == 1) return v;
  Shape shape = b.type(v).shape;
  int64_t outer = 1;
  int64_t inner = 1;
  for (size_t i = 0; i < shape.size(); ++i) (i < d ? outer : inner) *= i == d ? 1 : shape[i];
  shape[d] = copies == 0 ? b.input_type(0).shape[d] : shape[d] / copies;
  const Shape apart =
      adjacent ? Shape{outer, shape[d], copies, inner} : Shape{outer, copies, shape[d], inner};
  return b.reshape(b.sum(b.reshape(v, apart), {adjacent ? 2 : 1}, false), shape);
}

}  // namespace pyc::ops
