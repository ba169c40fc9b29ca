#include <algorithm>

#include "ops/support/index.h"
#include "ops/support/losses.h"

namespace pyc::ops {
namespace {

Types infer_nll_terms(const InferArgs& args) {
  PYC_TRY(require_class_targets(args));
  const TensorType terms{compute_dtype(args.inputs[0].dtype), args.inputs[1].shape};
  return std::vector<TensorType>{terms, terms};
}

Expr lower_nll_terms(LowerContext& context, int output, std::span<const Expr> index) {
  const int64_t classes = context.input_type(0).shape[1];
  const Expr target = convert(context.input(1, index), DType::kI64);
  const Expr ignored = eq(target, context.index(context.attr_int("ignore_index")));
  context.check(ignored | between(context, target, 0, classes), "target out of range");
  const Expr last = context.index(std::max<int64_t>(classes - 1, 0));
  const Expr at = min(max(target, context.index(0)), last);
  const DType wide = context.output_type(0).dtype;
  const Expr none = zero(context, wide);
  const Index class_index{at};
  const Expr weight = context.inputs() > 2 ? context.input_compute(2, class_index)
                                           : loop::constant(context.pool(), wide, 1.0);
  if (output == 1) return select(ignored, none, weight);
  Index place{index[0], at};
  for (const Expr& i : index.subspan(1)) place.push_back(i);
  const Expr loss = -context.input_compute(0, place);
  return select(ignored, none, context.inputs() > 2 ? weight * loss : loss);
}

}  // namespace

const ir::OpDef& op_nll_terms() {
  static const ir::OpDef def{
      .name = "nll_terms",
      .summary =
          "Per target: weight[c]*(-x[c]) and weight[c] (1 without weights), c the target; both 0 "
          "where it is ignored.",
      .min_inputs = 2,
      .max_inputs = 3,
      .outputs = 2,
      .attrs = {optional("ignore_index", kNothingIgnored)},
      .infer = infer_nll_terms,
      .lower = lower_nll_terms,
  };
  return def;
}

}  // namespace pyc::ops
