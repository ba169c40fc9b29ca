#pragma once

// What is known of an expression because of its form or of the loops that ran before it.

#include "loop/loop.h"

namespace pyc::cpu {

// Whether a float expression is proven to be zero, negative or NaN: -|x|, the range of a function
// says so, or a row's element less the maximum of that row; perhaps raised to a constant that is
// not positive.
bool never_positive(const loop::Kernel& kernel, loop::ExprId id);

// Whether it is the minimum or maximum of a float and a constant that the float never passes: by
// the above, or by the range of the function it is a call of.
bool has_no_effect(const loop::Kernel& kernel, loop::ExprId id);

}  // namespace pyc::cpu
