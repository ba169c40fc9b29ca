#pragma once

// Reductions over axes: attributes `axes` (empty: all) and `keepdims`.

#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {

std::vector<ir::AttrDef> reduce_attrs();
Types infer_reduce(const InferArgs& args, const DTypeClass& accepted);

// The reduction of input 0, in the dtype arithmetic is done in.
Expr reduce_axes(LowerContext& context, loop::ReduceKind kind, loop::ReduceOp op,
                 std::span<const Expr> index);
// The canonical sum or product: a tree for floats, wrapping for integers.
Expr total_axes(LowerContext& context, loop::ReduceOp op, std::span<const Expr> index);
// The largest (op kMax) or smallest (kMin) element; false < true. No elements: the identity.
Expr extreme_axes(LowerContext& context, loop::ReduceOp op, std::span<const Expr> index);
// How many elements of input 0 go into one element of the output.
int64_t reduced_elements(const LowerContext& context);

}  // namespace pyc::ops
