#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
#include "ops/support/window.h"
#include "ops/support/window_gradient.h"

namespace pyc::ops {
namespace {

std::vector<ir::AttrDef> attrs_lp_pool() {
  auto result = pool_attrs();
  result.push_back(optional("p", int64_t{2}));
  return result;
}

Types infer_lp_pool(const InferArgs& args) {
  if (args.attr_int("p") < 1) {
    return refuse(Code::kInvalidArgument, "p must be positive, found ", args.attr_int("p"));
  }
  return infer_pool(args, kFloats);
}

Expr power(Expr x, int64_t p) {
  if (p == 1) return abs(x);
  if (p == 2) return x * x;
  return loop::pow(abs(x), like(x, static_cast<double>(p)));
}

Expr root(Expr x, int64_t p) {
  if (p == 1) return x;
  if (p == 2) return sqrt(x);
  return loop::pow(x, like(x, 1.0 / static_cast<double>(p)));
}

Expr lower_lp_pool(LowerContext& context, int, std::span<const Expr> index) {
  const Window window = pool_window(context);
  const int64_t p = context.attr_int("p");
  const auto term = [&](std::span<const Expr> k) {
    ReduceTerm result = pool_term(context, window, index, k);
    result.value = power(result.value, p);
    return result;
  };
  const Expr sum =
      context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum, window.kernel, term);
  return rounded(context, root(sum, p));
}

ValueId gradient_lp_pool(Backward& b) {
  // g · (|x| / y)^(p-1) · sign(x), 0 where y is.
  const Window window = window_of(b.node_attrs(), b.attrs().attr_ints("kernel"));
  const auto p = static_cast<double>(b.attrs().attr_int("p"));
  const ValueId x = b.x();
  const ValueId none = b.is(b.y(), 0.0);
  const ValueId norm = b.where(none, b.scalar_like(b.y(), 1.0), b.y());
  const auto power = [&](ValueId v) { return b.op("pow", {v, b.scalar_like(v, p - 1.0)}); };
  const ValueId share = p == 1.0 ? b.g() : b.div(b.g(), power(norm));
  const ValueId sums = sum_over_windows(b, b.except(none, share), window);
  const ValueId size = p == 1.0 ? sums : b.mul(sums, power(b.fn("abs", x)));
  const ValueId below = b.less(x, b.scalar_like(x, 0.0));
  return b.where(below, b.neg(size), b.except(b.is(x, 0.0), size));
}

Result<ValueId> draw_lp_pool(Draw& d, DType t) { return drawn_pool(d, t, {{"p", d.pick(1, 3)}}); }

}  // namespace

const ir::OpDef& op_lp_pool() {
  static const ir::OpDef def{
      .name = "lp_pool",
      .summary =
          "The p-norm of each window of x (NC, planes): powers added in order, then the root.",
      .attrs = attrs_lp_pool(),
      .infer = infer_lp_pool,
      .lower = lower_lp_pool,
      .gradient = gradient_of_one<gradient_lp_pool>,
      .onnx = {.name = "LpPool", .attrs = "kernel_shape=kernel strides pads dilations p"},
      .draw = {.node = draw_lp_pool},
  };
  return def;
}

}  // namespace pyc::ops
