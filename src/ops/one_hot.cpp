#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

// Where the new dim stands in the result.
int64_t new_axis(int64_t axis, const TensorType& indices) {
  return from_front(axis, indices.rank() + 1);
}

Types infer_one_hot(const InferArgs& args) {
  const TensorType& indices = args.inputs[0];
  const TensorType& values = args.inputs[1];
  PYC_TRY(require_dtype("indices", indices, kNumbers));
  if (values.shape != Shape{2}) {
    return refuse(Code::kShapeMismatch, "values must have shape [2], found ", values);
  }
  PYC_TRY(require_ints("depth", {args.attr_int("depth")}, 1, 0, ir::kMaxElements));
  const int64_t axis = args.attr_int("axis");
  if (axis < -indices.rank() - 1 || axis > indices.rank()) {
    return refuse(Code::kInvalidArgument, "axis ", axis, " is outside of the result, which has ",
                  indices.rank() + 1, " dims");
  }
  Shape shape = indices.shape;
  shape.insert(shape.begin() + new_axis(axis, indices), args.attr_int("depth"));
  return one(values.dtype, std::move(shape));
}

Expr lower_one_hot(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& indices = context.input_type(0);
  const int64_t axis = new_axis(context.attr_int("axis"), indices);
  Index at = to_index(index);
  at.erase(at.begin() + axis);
  Expr wanted = convert(context.input(0, at), DType::kI64);
  if (!is_unsigned_int(indices.dtype)) {
    const Expr counted_back = wanted + context.index(context.attr_int("depth"));
    wanted = select(lt(wanted, context.index(0)), counted_back, wanted);
  }
  const Expr off = context.input(1, Index{context.index(0)});
  const Expr on = context.input(1, Index{context.index(1)});
  return select(eq(wanted, index[static_cast<size_t>(axis)]), on, off);
}

Grads gradient_one_hot(ir::GraphBuilder& builder, const ir::Node& node,
                       std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const ValueId marks = b.constant(DType::kBool, {2}, {0.0, 1.0});
  const ValueId hit = b.op("one_hot", {b.input(0), marks}, node.attrs);
  const auto all = [&](ValueId v) { return b.reshape(b.op("reduce_sum", {v}), {1}); };
  const ValueId both = b.concat({all(b.except(hit, b.g())), all(b.only(hit, b.g()))}, 0);
  return b.outputs({ir::kNoId, b.stored(both, 1)});
}

Result<ValueId> draw_one_hot(Draw& d, DType t) {
  const Shape shape = d.shape(0, 3);
  const int64_t depth = d.pick(0, 6);
  const DType index = d.choose({DType::kI64, DType::kI32, DType::kF32, DType::kU8});
  const ValueId at = d.fresh(index, shape, -7.0, 7.0);
  return d.op({at, d.tensor(t, {2})},
              {{"axis", d.pick(-std::ssize(shape) - 1, std::ssize(shape))}, {"depth", depth}});
}

}  // namespace

const ir::OpDef& op_one_hot() {
  static const ir::OpDef def{
      .name = "one_hot",
      .summary =
          "values[1] where the index along a new dim of size depth is the one given, else "
          "values[0]; negative indices count from the end, others beyond the dim match none.",
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {optional("axis", int64_t{-1}), required("depth", ir::AttrKind::kInt)},
      .infer = infer_one_hot,
      .lower = lower_one_hot,
      .traits = {.moves_data = true},
      .gradient = gradient_one_hot,
      .draw = {.node = draw_one_hot, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
