#include <algorithm>

#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Types infer_gather(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& indices = args.inputs[1];
  PYC_TRY(require_dtype("indices", indices, kIndices));
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  const auto axis = from_front(args.attr_int("axis"), x.rank());
  Shape shape(x.shape.begin(), x.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  const bool selects = std::find(shape.begin(), shape.end(), 0) == shape.end();
  if (x.shape[static_cast<size_t>(axis)] == 0 && selects) {
    return refuse(Code::kShapeMismatch, "dim ", axis, " of ", x,
                  " is empty, there is nothing to select");
  }
  return one(x.dtype, std::move(shape));
}

Expr lower_gather(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& x = context.input_type(0);
  const auto axis = static_cast<size_t>(from_front(context.attr_int("axis"), x.rank()));
  const auto rank = static_cast<size_t>(context.input_type(1).rank());
  const Expr wanted = context.input(1, index.subspan(axis, rank));

  Index at = to_index(index.first(axis));
  at.push_back(checked_index(context, 1, wanted, x.shape[axis]));
  const auto inner = index.subspan(axis + rank);
  at.insert(at.end(), inner.begin(), inner.end());
  return context.input(0, at);
}

Grads gradient_gather(ir::GraphBuilder& builder, const ir::Node& node,
                      std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const int64_t axis = from_front(b.attrs().attr_int("axis"), b.input_type(0).rank());
  const ValueId updates = indices_first(b, b.g(), axis, b.input_type(1).rank());
  const ValueId of_x = sum_at(b, updates, b.input(1), axis, b.input_type(0).shape);
  return b.outputs({b.stored(of_x, 0), ir::kNoId});
}

Result<ValueId> draw_gather(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t axis = d.axis(std::ssize(shape));
  const int64_t n = shape[static_cast<size_t>(from_front(axis, std::ssize(shape)))];
  const ValueId x = d.tensor(t, shape);
  return d.op({x, d.indices(d.shape(0, 2), -n, n - 1)}, {{"axis", axis}});
}

}  // namespace

const ir::OpDef& op_gather() {
  static const ir::OpDef def{
      .name = "gather",
      .summary = "Slices of x along an axis picked by indices; negative ones count from the end.",
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {optional("axis", int64_t{0})},
      .infer = infer_gather,
      .lower = lower_gather,
      .traits = {.moves_data = true},
      .canonical_attrs = canonical_axis,
      .gradient = gradient_gather,
      .onnx = {.name = "Gather", .attrs = "axis"},
      .draw = {.node = draw_gather},
  };
  return def;
}

}  // namespace pyc::ops
