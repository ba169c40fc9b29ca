#include "ops/support/reduce_gradient.h"

#include <algorithm>

namespace pyc::ops {
namespace {

// The axes that are reduced, in order.
Ints reduced_axes(Backward& b) {
  const int64_t rank = b.input_type(0).rank();
  Ints axes = b.attrs().attr_ints("axes");
  if (axes.empty()) return int_range(0, rank);
  for (int64_t& axis : axes) axis = from_front(axis, rank);
  std::sort(axes.begin(), axes.end());
  return axes;
}

// The kept axes, then the reduced ones.
Ints kept_first(Backward& b) {
  const Ints reduced = reduced_axes(b);
  Ints perm;
  for (int64_t d = 0; d < b.input_type(0).rank(); ++d) {
    if (!std::binary_search(reduced.begin(), reduced.end(), d)) perm.push_back(d);
  }
  perm.insert(perm.end(), reduced.begin(), reduced.end());
  return perm;
}

}  // namespace

ValueId spread(Backward& b, ValueId v) {
  const Shape shape = b.input_type(0).shape;
  Shape kept = shape;
  for (int64_t axis : reduced_axes(b)) kept[static_cast<size_t>(axis)] = 1;
  return b.expand(b.reshape(v, kept), shape);
}

ValueId to_extremes(Backward& b) {
  const ValueId taken = b.equal(b.x(), spread(b, b.y()));
  const ValueId marks = b.cast(taken, b.type(b.g()).dtype);
  const ValueId count = b.op("reduce_sum", {marks}, b.node_attrs());
  return b.only(taken, spread(b, b.div(b.g(), count)));
}

ValueId reduced_rows(Backward& b) {
  const Shape shape = b.input_type(0).shape;
  int64_t members = 1;
  for (int64_t axis : reduced_axes(b)) members *= shape[static_cast<size_t>(axis)];
  return b.reshape(b.transpose(b.x(), kept_first(b)), {b.type(b.g()).elements(), members});
}

ValueId rows_back(Backward& b, ValueId rows) {
  const Shape shape = b.input_type(0).shape;
  const Ints perm = kept_first(b);
  Shape moved;
  Ints back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    moved.push_back(shape[static_cast<size_t>(perm[i])]);
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return b.transpose(b.reshape(rows, moved), back);
}

}  // namespace pyc::ops
