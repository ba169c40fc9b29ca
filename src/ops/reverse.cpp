#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_reverse(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_axes(args.attr_ints("axes"), x));
  return one(x.dtype, x.shape);
}

Expr lower_reverse(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& x = context.input_type(0);
  Index at = to_index(index);
  for (int64_t axis : context.attr_ints("axes")) {
    const auto d = static_cast<size_t>(from_front(axis, x.rank()));
    at[d] = context.index(x.shape[d] - 1) - at[d];
  }
  return context.input(0, at);
}

ValueId gradient_reverse(Backward& b) { return b.op("reverse", {b.g()}, b.node_attrs()); }

Result<ValueId> draw_reverse(Draw& d, DType t) {
  const Shape shape = d.shape();
  return d.op({d.tensor(t, shape)}, {{"axes", d.axes(std::ssize(shape))}});
}

}  // namespace

const ir::OpDef& op_reverse() {
  static const ir::OpDef def{
      .name = "reverse",
      .summary = "x with the order of its elements reversed along each of axes.",
      .attrs = {required("axes", ir::AttrKind::kInts)},
      .infer = infer_reverse,
      .lower = lower_reverse,
      .traits = {.moves_data = true},
      .gradient = gradient_of_one<gradient_reverse>,
      .draw = {.node = draw_reverse},
  };
  return def;
}

}  // namespace pyc::ops
