#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
#include "ops/support/window.h"
#include "ops/support/window_gradient.h"

namespace pyc::ops {
namespace {

std::vector<ir::AttrDef> attrs_avg_pool() {
  auto result = pool_attrs();
  result.push_back(optional("counted_pads", Ints{}));
  return result;
}

Types infer_avg_pool(const InferArgs& args) {
  PYC_ASSIGN(auto types, infer_pool(args, kFloats));
  const size_t count = 2 * args.attr_ints("kernel").size();
  const Ints counted = list_attr(args.attrs, "counted_pads", count, 0);
  PYC_TRY(require_ints("counted_pads", counted, count, 0, kMaxWindowAttr));
  const Ints pads = list_attr(args.attrs, "pads", count, 0);
  for (size_t i = 0; i < count; ++i) {
    if (counted[i] <= pads[i]) continue;
    return refuse(Code::kInvalidArgument, "counted_pads ", counted, " must be within pads ", pads);
  }
  return types;
}

// How many taps of the window count: those in the input or its counted pads.
Expr count_taps(LowerContext& context, const Window& window, std::span<const Expr> index) {
  const Shape& shape = context.input_type(0).shape;
  const Ints counted = list_attr(context.node().attrs, "counted_pads", 2 * window.dims(), 0);
  Expr count = context.index(1);
  for (size_t d = 0; d < window.dims(); ++d) {
    const Expr dilation = context.index(window.dilations[d]);
    const Expr origin =
        index[d + 2] * context.index(window.strides[d]) - context.index(window.begin[d]);
    // Taps from `first` to `last` lie between the borders.
    const Expr before = context.index(-counted[d]) - origin;
    const Expr behind = context.index(shape[d + 2] + counted[d + window.dims()] - 1) - origin;
    const Expr first =
        max(floor_div(before + dilation - context.index(1), dilation), context.index(0));
    const Expr last = min(floor_div(behind, dilation), context.index(window.kernel[d] - 1));
    count = count * max(last - first + context.index(1), context.index(0));
  }
  return count;
}

Expr lower_avg_pool(LowerContext& context, int, std::span<const Expr> index) {
  const Window window = pool_window(context);
  const auto term = [&](std::span<const Expr> k) { return pool_term(context, window, index, k); };
  const Expr sum =
      context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum, window.kernel, term);
  const DType wide = compute_dtype(context.input_type(0).dtype);
  return rounded(context, sum / convert(count_taps(context, window, index), wide));
}

ValueId gradient_avg_pool(Backward& b) {
  const Window window = window_of(b.node_attrs(), b.attrs().attr_ints("kernel"));
  const Shape planes = planes_of(b.input_type(0));
  const Ints counted = list_attr(b.node_attrs(), "counted_pads", 2 * window.dims(), 0);
  ValueId count = b.scalar_like(b.g(), 1.0);
  for (size_t d = 0; d < window.dims(); ++d) {
    std::vector<double> taps(static_cast<size_t>(b.type(b.g()).shape[d + 2]), 0.0);
    for (size_t o = 0; o < taps.size(); ++o) {
      for (int64_t k = 0; k < window.kernel[d]; ++k) {
        const int64_t at =
            static_cast<int64_t>(o) * window.strides[d] + k * window.dilations[d] - window.begin[d];
        if (at >= -counted[d] && at < planes[d] + counted[d + window.dims()]) taps[o] += 1.0;
      }
    }
    Shape shape(window.dims(), 1);
    shape[d] = static_cast<int64_t>(taps.size());
    count = b.mul(count, b.constant(b.type(count).dtype, shape, taps));
  }
  // A window of nothing has nobody to send to.
  const ValueId some = b.op("max", {count, b.scalar_like(count, 1.0)});
  return sum_over_windows(b, b.div(b.g(), some), window);
}

Result<ValueId> draw_avg_pool(Draw& d, DType t) {
  DrawnWindow w = drawn_window(d, d.pick(1, 3));
  const ValueId x = d.tensor(t, w.shape(d.pick(1, 2), d.pick(1, 3)));
  w.attrs["kernel"] = w.kernel;
  if (d.flip()) w.attrs["counted_pads"] = w.attrs["pads"];
  return d.op({x}, std::move(w.attrs));
}

}  // namespace

const ir::OpDef& op_avg_pool() {
  static const ir::OpDef def{
      .name = "avg_pool",
      .summary =
          "The average of each window of x (NC, planes): taps added in order, divided by the "
          "number of taps in x and in counted_pads, the part of pads that counts.",
      .attrs = attrs_avg_pool(),
      .infer = infer_avg_pool,
      .lower = lower_avg_pool,
      .gradient = gradient_of_one<gradient_avg_pool>,
      .draw = {.node = draw_avg_pool},
  };
  return def;
}

}  // namespace pyc::ops
