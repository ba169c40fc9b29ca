#pragma once

// Operands whose elements lie in runs, as the channels of a window do where they are last. Private
// to the generators.

#include "loop/loop.h"

namespace pyc::cuda {

// The load that an operand's element is but for a conversion, if it reads `type` and is +0 where
// its guard is false; kNone if it is anything else.
loop::ExprId padded_load(const loop::Pool& pool, loop::ExprId value, DType type);

// Whether the load at width·i … width·i + width - 1 of `var`, which counts to `extent`, is always
// one aligned access, or none: the places follow one another from a multiple of `width` on, and
// the guard is the same for all of them.
bool lies_in_runs(const loop::Pool& pool, loop::ExprId load, loop::VarId var, int64_t extent,
                  int64_t width);

}  // namespace pyc::cuda
