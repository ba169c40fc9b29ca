#pragma once

// Kernels that work along one axis: every other dim is parallel.

#include "ops/kernel.h"
#include "ops/support/index.h"

namespace pyc::ops {

struct Row {
  Index index;  // of the point; the entry of the axis is left open
  size_t axis = 0;
  int64_t length = 0;

  Index at(Expr k) const {
    Index result = index;
    result[axis] = k;
    return result;
  }
};

// Calls `body` for the row along `axis` that belongs to each point of the other dims of `shape`.
// With `lanes`, the last dim may be a vector loop, so nothing in the body is ordered.
void each_row(KernelContext& context, const ir::Shape& shape, int64_t axis, bool lanes,
              const std::function<void(const Row&)>& body);

}  // namespace pyc::ops
