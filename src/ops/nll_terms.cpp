#include <algorithm>

#include "ops/support/backward.h"
#include "ops/support/draws.h"
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
  const int64_t ignore = context.attr_int("ignore_index");
  const Expr ignored = eq(target, context.index(ignore));
  const Accepted accepted{.first = 0, .last = classes - 1, .also = ignore};
  context.check_input(1, ignored | between(context, target, 0, classes), accepted, "target");
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

Grads gradient_nll_terms(ir::GraphBuilder& builder, const ir::Node& node,
                         std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  // Which element of x each target picks.
  const TensorType x = b.input_type(0);
  Shape column = x.shape;
  column[1] = 1;
  const ValueId target = b.reshape(b.cast(b.input(1), DType::kI64), column);
  const ValueId ignored = b.is(target, static_cast<double>(b.attrs().attr_int("ignore_index")));
  const ValueId found = b.equal(target, b.positions(x.rank(), 1, x.shape[1]));
  const ValueId hit = b.op("logical_and", {found, b.op("logical_not", {ignored})});
  const ValueId g = b.reshape(b.g(0), column);
  const bool weighted = b.inputs() > 2;
  if (!weighted) return b.outputs({b.stored(b.only(hit, b.neg(g)), 0), ir::kNoId});
  Shape per_class(column.size() - 1, 1);
  per_class[0] = x.shape[1];
  const ValueId of_x = b.only(hit, b.neg(b.mul(g, b.reshape(b.x(2), per_class))));
  const ValueId terms = b.only(hit, b.sub(b.reshape(b.g(1), column), b.mul(g, b.x(0))));
  Ints others = int_range(1, x.rank());
  others[0] = 0;
  return b.outputs({b.stored(of_x, 0), ir::kNoId, b.stored(b.sum(terms, others, false), 2)});
}

Result<ValueId> draw_nll_terms(Draw& d, DType t) { return d.op(drawn_loss_inputs(d, t)); }

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
      .gradient = gradient_nll_terms,
      .draw = {.node = draw_nll_terms},
  };
  return def;
}

}  // namespace pyc::ops
