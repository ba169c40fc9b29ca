#pragma once

// The index of a row's largest or smallest element: attributes `axis`, `keepdims`, `select_last`.

#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {

std::vector<ir::AttrDef> arg_attrs();
Types infer_arg(const InferArgs& args);

// Two exact reductions: the value, then the first (or last) index that has it. NaN is both
// largest and smallest.
Expr arg_reduce(LowerContext& context, loop::ReduceOp op, std::span<const Expr> index);

}  // namespace pyc::ops
