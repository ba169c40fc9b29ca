#pragma once

// Random numbers as a function of attributes `seed` and `stream` and the element's index alone
// (base/philox.h). Ops with these have the trait `random`: the builder numbers their streams.

#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {

std::vector<ir::AttrDef> random_attrs(std::vector<ir::AttrDef> more);

// Random word `at` (i64) of the node's sequence, times 2^-32: f64 in [0, 1), exactly.
Expr random_unit(LowerContext& context, Expr at);

// Type rule of generators without inputs: attributes `dtype` (a float one) and `shape`.
Types infer_random(const InferArgs& args);

}  // namespace pyc::ops
