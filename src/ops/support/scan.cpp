#include "ops/support/scan.h"

#include "ops/support/rows.h"

namespace pyc::ops {
namespace {

constexpr int64_t kBlock = 1024;

}  // namespace

std::vector<ir::AttrDef> scan_attrs() {
  return {optional("axis", int64_t{0}), optional("exclusive", false), optional("reverse", false)};
}

Types infer_scan(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("input", x, kNumbers));
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  return one(x.dtype, x.shape);
}

void scan(KernelContext& context, double identity, Expr (*combine)(Expr total, Expr x)) {
  const TensorType& type = context.input_type(0);
  const bool exclusive = context.attr_bool("exclusive");
  const bool reverse = context.attr_bool("reverse");
  const Expr start = loop::constant(context.pool(), compute_dtype(type.dtype), identity);
  each_row(context, type.shape, context.attr_int("axis"), true, [&](const Row& row) {
    // Carried: the blocks before, the block so far, and the result before if that is stored.
    std::vector<KernelContext::Carried> carried(exclusive ? 3 : 2, {start});
    const auto step = [&](Expr i, std::span<const Expr> c) {
      const Index at = row.at(reverse ? context.index(row.length - 1) - i : i);
      const Expr begins = eq(floor_mod(i, context.index(kBlock)), context.index(0));
      const Expr before = select(begins, combine(c[0], c[1]), c[0]);
      const Expr block = combine(select(begins, start, c[1]), context.input_compute(0, at));
      const Expr total = combine(before, block);
      const Expr y = convert(exclusive ? c[2] : total, type.dtype);
      context.store(context.output(0), position(context, at, type.shape), y);
      std::vector<Expr> next{before, block};
      if (exclusive) next.push_back(total);
      return next;
    };
    context.loop(row.length, KernelContext::Order::kSerial, carried, step);
  });
}

}  // namespace pyc::ops
