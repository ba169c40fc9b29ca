#pragma once

// The proof that accesses do not meet. Private to loop/.

#include <vector>

#include "loop/loop.h"

namespace pyc::loop {

// Where a buffer is accessed.
struct Place {
  ExprId offset = kNone;
  std::vector<uint32_t> loops;  // those around it, from the outermost on
};

// Whether two accesses always hit different elements when any of the `wanted` variables (the
// parallel ones, or one loop's) differs and none of the `fixed` ones does. The offsets are read as
// numbers in a mixed radix: a term whose coefficient exceeds the span of all smaller terms can be
// read off the offset, and from the terms read off every wanted variable must follow.
bool apart(const Kernel& kernel, const Place& x, const Place& y, const std::vector<VarId>& wanted,
           const std::vector<VarId>& fixed = {});

}  // namespace pyc::loop
