#pragma once

// Elementwise ops: a formula over one element of each input. Narrow floats are widened to f32 for
// the formula, and its result is rounded once. A formula is a function or a lambda over Exprs; one
// of a single element may take the LowerContext first, for attributes.

#include <type_traits>

#include "loop/functions.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {

// The element of input i that belongs to the output's element at `index`, as stored and as widened
// for arithmetic.
inline Expr operand(LowerContext& context, int i, std::span<const Expr> index) {
  return context.input(i, broadcast_index(context, index, context.input_type(i).shape));
}
inline Expr wide_operand(LowerContext& context, int i, std::span<const Expr> index) {
  return context.input_compute(i, broadcast_index(context, index, context.input_type(i).shape));
}

// `x` as an element of the output: the one rounding.
inline Expr rounded(LowerContext& context, Expr x) {
  return convert(x, context.output_type(0).dtype);
}

template <auto Formula>
Expr lower_unary(LowerContext& context, int, std::span<const Expr> index) {
  const Expr x = context.input_compute(0, index);
  if constexpr (std::is_invocable_v<decltype(Formula), LowerContext&, Expr>) {
    return rounded(context, Formula(context, x));
  } else {
    return rounded(context, Formula(x));
  }
}

// Also for comparisons, whose formula gives a bool.
template <auto Formula>
Expr lower_binary(LowerContext& context, int, std::span<const Expr> index) {
  const Expr a = wide_operand(context, 0, index);
  const Expr b = wide_operand(context, 1, index);
  return rounded(context, Formula(a, b));
}

}  // namespace pyc::ops
