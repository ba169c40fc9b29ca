#include "ops/support/scan.h"

#include "ops/support/rows.h"

namespace pyc::ops {
namespace {

// Of elements: a block, and a super-block of blocks.
constexpr int64_t kBlock = 1024;
constexpr int64_t kSuperBlock = 1024 * kBlock;

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
    // In the first super-block the base is the identity, which changes nothing: 1 no product, and
    // +0 no sum, as a sum from +0 is never -0.
    const bool has_base = row.length > kSuperBlock;
    // Carried: the blocks before in the super-block, the block so far, the super-blocks before if
    // there can be any, and the result before if that is stored.
    const size_t last = has_base ? 3 : 2;
    std::vector<KernelContext::Carried> carried(exclusive ? last + 1 : last, {start});
    const auto step = [&](Expr i, std::span<const Expr> c) {
      const auto begins = [&](int64_t length) {
        return eq(floor_mod(i, context.index(length)), context.index(0));
      };
      const Index at = row.at(reverse ? context.index(row.length - 1) - i : i);
      const Expr joined = combine(c[0], c[1]);
      Expr carry = select(begins(kBlock), joined, c[0]);
      if (has_base) carry = select(begins(kSuperBlock), start, carry);
      const Expr local = combine(select(begins(kBlock), start, c[1]), context.input_compute(0, at));
      Expr total = combine(carry, local);
      std::vector<Expr> next{carry, local};
      if (has_base) {
        next.push_back(select(begins(kSuperBlock), combine(c[2], joined), c[2]));
        total = combine(next.back(), total);
      }
      const Expr y = convert(exclusive ? c[last] : total, type.dtype);
      context.store(context.output(0), position(context, at, type.shape), y);
      if (exclusive) next.push_back(total);
      return next;
    };
    context.loop(row.length, KernelContext::Order::kSerial, carried, step);
  });
}

}  // namespace pyc::ops
