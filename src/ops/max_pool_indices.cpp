#include <numeric>

#include "ops/support/draws.h"
#include "ops/support/window.h"

namespace pyc::ops {
namespace {

std::vector<ir::AttrDef> attrs_max_pool_indices() {
  auto result = pool_attrs();
  result.push_back(optional("column_major", false));
  return result;
}

Types infer_max_pool_indices(const InferArgs& args) {
  PYC_ASSIGN(auto types, infer_pool(args, kNumbers));
  types[0].dtype = DType::kI64;
  return types;
}

// The number of the first tap that has the window's largest value; the number of taps if there is
// none inside the input.
Expr first_largest(LowerContext& context, const Window& window, std::span<const Expr> index) {
  const Expr largest =
      context.reduce(loop::ReduceKind::kExact, loop::ReduceOp::kMax, window.kernel,
                     [&](std::span<const Expr> k) { return pool_term(context, window, index, k); });
  const int64_t taps =
      std::accumulate(window.kernel.begin(), window.kernel.end(), int64_t{1}, std::multiplies<>());
  const auto number = [&](std::span<const Expr> k) {
    const Expr x = pool_term(context, window, index, k).value;
    const Expr nan = ne(x, x) & ne(largest, largest);
    const Expr here = pool_tap(context, window, index, k).inside & (eq(x, largest) | nan);
    return ReduceTerm{.value =
                          select(here, position(context, k, window.kernel), context.index(taps))};
  };
  return context.reduce(loop::ReduceKind::kExact, loop::ReduceOp::kMin, window.kernel, number);
}

Expr lower_max_pool_indices(LowerContext& context, int, std::span<const Expr> index) {
  const Window window = pool_window(context);
  const Expr tap = first_largest(context, window, index);
  const Index k = index_at(context, tap, window.kernel);
  const Index at = pool_tap(context, window, index, k).at;
  const Shape& shape = context.input_type(0).shape;
  Expr place = context.index(0);
  if (context.attr_bool("column_major")) {
    for (size_t d = at.size(); d-- > 0;) place = place * context.index(shape[d + 2]) + at[d];
  } else {
    for (size_t d = 0; d < at.size(); ++d) place = place * context.index(shape[d + 2]) + at[d];
  }
  int64_t plane = 1;
  int64_t taps = 1;
  for (size_t d = 0; d < at.size(); ++d) {
    plane *= shape[d + 2];
    taps *= window.kernel[d];
  }
  const Expr planes_before = index[0] * context.index(shape[1]) + index[1];
  return select(lt(tap, context.index(taps)), planes_before * context.index(plane) + place,
                context.index(-1));
}

Result<ValueId> draw_max_pool_indices(Draw& d, DType t) {
  return drawn_pool(d, t, {{"column_major", d.flip()}});
}

}  // namespace

const ir::OpDef& op_max_pool_indices() {
  static const ir::OpDef def{
      .name = "max_pool_indices",
      .summary =
          "Where in x (row-major, or each plane column-major) the first largest element of "
          "max_pool's window lies; -1 for a window of padding only.",
      .attrs = attrs_max_pool_indices(),
      .infer = infer_max_pool_indices,
      .lower = lower_max_pool_indices,
      .no_gradient = "its result is an index",
      .draw = {.node = draw_max_pool_indices, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
