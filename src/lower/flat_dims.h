#pragma once

// Into which dims the space of a flat kernel is cut: any factors of its element count are right.
// Private to lower/.

#include <span>

#include "ir/graph.h"
#include "loop/loop.h"

namespace pyc::lower {

// A kernel with one variable per dim, its loops over the dims not yet made.
struct FlatKernel {
  const loop::Kernel& kernel;
  std::span<const loop::VarId> vars;
  const ir::Shape& dims;
};

// The dims with every pair of neighbours joined that all accesses run through as one.
ir::Shape collapsed_dims(const FlatKernel& flat);

// For a kernel that sums products: the dims with the neighbours joined of which only the operand
// without columns depends (rows), and those up to the last one of which only the other depends
// (columns), where what is stored runs through them as one. A dim that one operand sees in pieces,
// as groups of channels or of heads are, is cut first: then these are the dims to ask about again.
ir::Shape product_dims(const FlatKernel& flat);

// Whether a product's guard belongs to `b`, the operand that depends on the columns `n`: to the
// operand that depends on what it depends on, or that is read under it.
bool guards_columns(const loop::Pool& pool, loop::ExprId guard, loop::ExprId a, loop::ExprId b,
                    loop::VarId n);

}  // namespace pyc::lower
