#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Types infer_resample(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& indices = args.inputs[1];
  PYC_TRY(require_dtype("indices", indices, kIndices));
  PYC_TRY(require_rank("indices", indices, 2));
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  const auto axis = static_cast<size_t>(from_front(args.attr_int("axis"), x.rank()));
  if (args.inputs.size() == 2 && indices.shape[1] != 1) {
    return refuse(Code::kShapeMismatch, "without weights indices must have one column, found ",
                  indices);
  }
  if (args.inputs.size() == 3) {
    const TensorType& weights = args.inputs[2];
    PYC_TRY(require_dtype("x", x, kFloats));
    PYC_TRY(require_same_dtype(x, weights));
    if (weights.shape != indices.shape) {
      return refuse(Code::kShapeMismatch, "weights ", weights, " must have the shape of indices ",
                    indices);
    }
  }
  if (x.shape[axis] == 0) {
    return refuse(Code::kShapeMismatch, "dim ", static_cast<int64_t>(axis), " of ", x,
                  " is empty, there is nothing to select");
  }
  Shape shape = x.shape;
  shape[axis] = indices.shape[0];
  return one(x.dtype, std::move(shape));
}

Expr lower_resample(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& x = context.input_type(0);
  const auto axis = static_cast<size_t>(from_front(context.attr_int("axis"), x.rank()));
  const auto place = [&](Expr tap) {
    const Expr wanted = convert(context.input(1, Index{index[axis], tap}), DType::kI64);
    Index at = to_index(index);
    at[axis] = min(max(wanted, context.index(0)), context.index(x.shape[axis] - 1));
    return at;
  };
  if (context.inputs() == 2) return context.input(0, place(context.index(0)));
  const auto term = [&](std::span<const Expr> k) {
    return ReduceTerm{.value = context.input_compute(0, place(k[0])),
                      .value2 = context.input_compute(2, Index{index[axis], k[0]})};
  };
  const Ints taps{context.input_type(1).shape[1]};
  return rounded(context, context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum, taps, term,
                                         kChainSegment));
}

Grads gradient_resample(ir::GraphBuilder& builder, const ir::Node& node,
                        std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const Shape shape = b.input_type(0).shape;
  const int64_t axis = from_front(b.attrs().attr_int("axis"), b.input_type(0).rank());
  const auto at = static_cast<size_t>(axis);
  const ValueId wanted = b.cast(b.input(1), DType::kI64);
  const ValueId last = b.scalar_like(wanted, static_cast<double>(shape[at] - 1));
  const ValueId indices = b.op("clip", {wanted, b.scalar_like(wanted, 0.0), last});
  const ValueId g = b.op("unsqueeze", {b.g()}, {{"axes", Ints{axis + 1}}});
  // Weights as they stand in [before…, o, t, after…].
  Shape placed(shape.size() + 1, 1);
  placed[at] = b.input_type(1).shape[0];
  placed[at + 1] = b.input_type(1).shape[1];
  const bool weighted = b.inputs() > 2;
  const ValueId parts = weighted ? b.mul(g, b.reshape(b.x(2), placed)) : g;
  const ValueId of_x =
      b.stored(sum_at(b, indices_first(b, parts, axis, 2), indices, axis, shape), 0);
  if (!weighted) return b.outputs({of_x, ir::kNoId});
  const ValueId read = b.op("gather", {b.x(0), indices}, {{"axis", axis}});
  const ValueId of_weights = b.reshape(b.sum_to(b.mul(read, g), placed), b.input_type(2).shape);
  return b.outputs({of_x, ir::kNoId, b.stored(of_weights, 2)});
}

Result<ValueId> draw_resample(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t axis = d.axis(std::ssize(shape));
  const bool weighted = is_float(t) && d.flip();
  const Shape table{d.pick(0, 6), weighted ? d.pick(1, 3) : 1};
  const ValueId x = d.tensor(t, shape);
  std::vector<ValueId> inputs{
      x, d.indices(table, 0, shape[static_cast<size_t>(from_front(axis, std::ssize(shape)))] - 1)};
  if (weighted) inputs.push_back(d.tensor(t, table));
  return d.op(std::move(inputs), {{"axis", axis}});
}

}  // namespace

const ir::OpDef& op_resample() {
  static const ir::OpDef def{
      .name = "resample",
      .summary =
          "Element o along an axis is the sum over t of weights[o,t]·x[indices[o,t]], or "
          "x[indices[o,0]] without weights; indices are clamped to the dim.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = {optional("axis", int64_t{-1})},
      .infer = infer_resample,
      .lower = lower_resample,
      .gradient = gradient_resample,
      .draw = {.node = draw_resample},
  };
  return def;
}

}  // namespace pyc::ops
