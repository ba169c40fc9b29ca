#pragma once

// What is known of an expression because of its form or of the loops that ran before it.

#include "loop/loop.h"

namespace pyc::cpu {

// Whether a float expression is proven to be zero, negative or NaN: -|x|, or a row's element less
// the maximum of that row; perhaps raised to a constant that is not positive.
bool never_positive(const loop::Kernel& kernel, loop::ExprId id);

}  // namespace pyc::cpu
