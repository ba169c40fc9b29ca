#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

// Output dim i is input dim perm[i].
Ints permutation(const Ints& perm, int64_t rank) {
  if (!perm.empty()) return perm;
  Ints reversed;
  for (int64_t i = rank; i-- > 0;) reversed.push_back(i);
  return reversed;
}

Types infer(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints perm = permutation(args.attr_ints("perm"), x.rank());
  PYC_TRY(require_ints("perm", perm, x.shape.size(), 0, x.rank() - 1));
  std::vector<bool> seen(x.shape.size(), false);
  Shape shape;
  for (int64_t from : perm) {
    const auto at = static_cast<size_t>(from);
    if (seen[at]) {
      return refuse(Code::kInvalidArgument, "perm ", perm, " names dim ", from, " twice");
    }
    seen[at] = true;
    shape.push_back(x.shape[at]);
  }
  return one(x.dtype, std::move(shape));
}

Expr lower(LowerContext& context, int, std::span<const Expr> index) {
  const Ints perm = permutation(context.attr_ints("perm"), context.input_type(0).rank());
  Index at(index.size());
  for (size_t i = 0; i < index.size(); ++i) at[static_cast<size_t>(perm[i])] = index[i];
  return context.input(0, at);
}

}  // namespace

const ir::OpDef& op_transpose() {
  static const ir::OpDef def{
      .name = "transpose",
      .summary = "Dims in the order of perm (none given: reversed).",
      .attrs = {optional("perm", Ints{})},
      .infer = infer,
      .lower = lower,
  };
  return def;
}

}  // namespace pyc::ops
