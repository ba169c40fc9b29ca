#pragma once

// Index arithmetic shared by the ops' lowerings.

#include <span>
#include <vector>

#include "ops/lowering.h"

namespace pyc::ops {

using Index = std::vector<Expr>;

inline Index to_index(std::span<const Expr> index) { return {index.begin(), index.end()}; }

// The index into a tensor of `shape` that is broadcast to what `index` runs over.
Index broadcast_index(LowerContext& context, std::span<const Expr> index, const ir::Shape& shape);

// Row-major position of `index` in `shape`, and back.
Expr position(LowerContext& context, std::span<const Expr> index, const ir::Shape& shape);
Index index_at(LowerContext& context, Expr position, const ir::Shape& shape);

// The element of input 0 that stands at the same row-major position as `index` in the output.
Expr same_position(LowerContext& context, int output, std::span<const Expr> index);

// `wanted`, an element of input i, as an index into a dim of this size, counted from the end if
// negative. The run fails if it is out of range; the result never is. Of every `every` elements of
// the input only number `nth` is an index into this dim.
Expr checked_index(LowerContext& context, int i, Expr wanted, int64_t dim, int64_t nth = 0,
                   int64_t every = 1);

// Whether lo <= i < hi.
Expr between(LowerContext& context, Expr i, int64_t lo, int64_t hi);

// Whether the pool has already found the condition to hold always.
bool always(Expr condition);

// 0, or false.
inline Expr zero(LowerContext& context, DType t) {
  return loop::constant_int(context.pool(), t, 0);
}
// The identity of max: -inf, or the smallest integer.
Expr lowest(LowerContext& context, DType t);
// The identity of min: +inf, or the largest integer.
Expr highest(LowerContext& context, DType t);

}  // namespace pyc::ops
