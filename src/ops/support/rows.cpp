#include "ops/support/rows.h"

#include <algorithm>

#include "ops/support/infer.h"

namespace pyc::ops {

void each_row(KernelContext& context, const ir::Shape& shape, int64_t axis, bool lanes,
              const std::function<void(const Row&)>& body) {
  Row row;
  row.axis = static_cast<size_t>(from_front(axis, static_cast<int64_t>(shape.size())));
  row.length = shape[row.axis];
  const size_t last = shape.size() - 1;
  lanes = lanes && row.axis != last && shape[last] > 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool open = d == row.axis || (lanes && d == last);
    row.index.push_back(open ? context.index(0) : context.parallel(shape[d]));
  }
  if (!lanes) return body(row);
  context.each(shape[last], KernelContext::Order::kVector, [&](Expr i) {
    row.index[last] = i;
    body(row);
  });
}

Expr checked_index(LowerContext& context, Expr wanted, int64_t dim) {
  const Expr zero_index = context.index(0);
  const Expr i = convert(wanted, DType::kI64);
  const Expr found = select(lt(i, zero_index), i + context.index(dim), i);
  context.check(between(context, found, 0, dim), "index out of range");
  return min(max(found, zero_index), context.index(std::max<int64_t>(dim - 1, 0)));
}

}  // namespace pyc::ops
