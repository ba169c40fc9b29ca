#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_gather_elements(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& indices = args.inputs[1];
  PYC_TRY(require_dtype("indices", indices, kIndices));
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  PYC_TRY(require_rank("indices", indices, x.rank()));
  const auto axis = static_cast<size_t>(from_front(args.attr_int("axis"), x.rank()));
  if (indices.elements() == 0) return one(x.dtype, indices.shape);
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (i == axis ? x.shape[i] > 0 : indices.shape[i] <= x.shape[i]) continue;
    return refuse(Code::kShapeMismatch, "dim ", static_cast<int64_t>(i), " of ", x,
                  " is too small for indices ", indices);
  }
  return one(x.dtype, indices.shape);
}

Expr lower_gather_elements(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& x = context.input_type(0);
  const auto axis = static_cast<size_t>(from_front(context.attr_int("axis"), x.rank()));
  Index at = to_index(index);
  at[axis] = checked_index(context, 1, context.input(1, index), x.shape[axis]);
  return context.input(0, at);
}

Grads gradient_gather_elements(ir::GraphBuilder& builder, const ir::Node& node,
                               std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const ValueId none = b.zeros(b.type(b.g()).dtype, b.input_type(0).shape);
  const ValueId of_x =
      b.op("scatter_elements", {none, b.input(1), b.g()},
           {{"axis", b.attrs().attr_int("axis")}, {"reduction", std::string("add")}});
  return b.outputs({b.stored(of_x, 0), ir::kNoId});
}

Result<ValueId> draw_gather_elements(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t axis = d.axis(std::ssize(shape));
  const int64_t n = shape[static_cast<size_t>(from_front(axis, std::ssize(shape)))];
  const ValueId x = d.tensor(t, shape);
  const ValueId at = d.indices(
      drawn_within(d, shape, static_cast<size_t>(from_front(axis, std::ssize(shape)))), -n, n - 1);
  return d.op({x, at}, {{"axis", axis}});
}

}  // namespace

const ir::OpDef& op_gather_elements() {
  static const ir::OpDef def{
      .name = "gather_elements",
      .summary =
          "For each of indices the element of x at the same place, but at that index along "
          "the axis; negative ones count from the end.",
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {optional("axis", int64_t{0})},
      .infer = infer_gather_elements,
      .lower = lower_gather_elements,
      .traits = {.moves_data = true},
      .gradient = gradient_gather_elements,
      .onnx = {.name = "GatherElements", .attrs = "axis"},
      .draw = {.node = draw_gather_elements},
  };
  return def;
}

}  // namespace pyc::ops
