#pragma once

// Random numbers as a function of attributes `seed` and `stream` and the element's index alone
// (base/philox.h). Ops with these have the trait `random`: the builder numbers their streams.

#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {

std::vector<ir::AttrDef> random_attrs(std::vector<ir::AttrDef> more);

// Random word `at` (i64) of the node's sequence, times 2^-32: f64 in [0, 1), exactly.
Expr random_unit(LowerContext& context, Expr at);

// The place of an element among those that the node draws, in all its runs together: a node may
// have a last input, i64[], that counts how often it was drawn before, and goes on in its sequence.
Expr drawn_position(LowerContext& context, std::span<const Expr> index, size_t last_input);
// Type rule of that input, if it is there.
Status check_drawn_before(const InferArgs& args, size_t last_input);

// Type rule of generators without other inputs: attributes `dtype` (a float one) and `shape`.
Types infer_random(const InferArgs& args);

}  // namespace pyc::ops
