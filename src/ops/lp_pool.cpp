#include "ops/support/elementwise.h"
#include "ops/support/window.h"

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

}  // namespace

const ir::OpDef& op_lp_pool() {
  static const ir::OpDef def{
      .name = "lp_pool",
      .summary =
          "The p-norm of each window of x (NC, planes): powers added in order, then the root.",
      .attrs = attrs_lp_pool(),
      .infer = infer_lp_pool,
      .lower = lower_lp_pool,
  };
  return def;
}

}  // namespace pyc::ops
