#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_tri(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  if (x.rank() < 2) {
    return refuse(Code::kRankMismatch, "input must have rank 2 or more, found ", x);
  }
  return one(x.dtype, x.shape);
}

Expr lower_tri(LowerContext& context, int, std::span<const Expr> index) {
  const Expr k = context.index(context.attr_int("k"));
  const Expr diagonal = index.back() - index[index.size() - 2];
  const Expr kept = context.attr_bool("upper") ? le(k, diagonal) : le(diagonal, k);
  return context.input_if(0, index, kept, zero(context, context.input_type(0).dtype));
}

ValueId gradient_tri(Backward& b) { return b.op("tri", {b.g()}, b.node_attrs()); }

Result<ValueId> draw_tri(Draw& d, DType t) {
  return d.op({d.tensor(t, d.shape(2))}, {{"k", d.pick(-3, 3)}, {"upper", d.flip()}});
}

}  // namespace

const ir::OpDef& op_tri() {
  static const ir::OpDef def{
      .name = "tri",
      .summary =
          "One triangle of the matrices in the last two dims, 0 elsewhere: from diagonal k "
          "upwards, or downwards if upper is off.",
      .attrs = {optional("k", int64_t{0}), optional("upper", true)},
      .infer = infer_tri,
      .lower = lower_tri,
      .gradient = gradient_of_one<gradient_tri>,
      .draw = {.node = draw_tri},
  };
  return def;
}

}  // namespace pyc::ops
