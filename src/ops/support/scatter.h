#pragma once

// Writing updates into a copy of a tensor: attribute `reduction` (none, add, mul, max, min).

#include "ops/kernel.h"
#include "ops/support/infer.h"

namespace pyc::ops {

ir::AttrDef reduction_attr();
// Checks the attribute, and data (input 0), indices (1) and updates (2) as far as every scatter
// asks the same of them.
Status require_scatter(const InferArgs& args);

// What an element becomes when an update hits it, rounded.
Expr updated(LowerContext& context, Expr old, Expr update);
// Whether `updated` needs the old value.
bool combines(const LowerContext& context);

}  // namespace pyc::ops
