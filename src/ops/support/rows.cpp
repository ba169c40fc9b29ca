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

}  // namespace pyc::ops
