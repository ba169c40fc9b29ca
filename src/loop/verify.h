#pragma once

#include "base/status.h"
#include "loop/loop.h"

namespace pyc::loop {

// Refuses a kernel that breaks a rule of loop.h: operand dtypes, variables used outside their
// scope, stores to read-only buffers, loads of a written non-scratch buffer, reductions in the
// wrong kind of loop, unguarded loads or any store that cannot be proven in bounds by the
// variables' ranges, stores of different parallel points that cannot be proven disjoint. The
// message names the statement.
Status verify_kernel(const Kernel& kernel);

}  // namespace pyc::loop
