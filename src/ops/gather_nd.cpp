#include <algorithm>

#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Status check_ranks(const TensorType& x, const TensorType& indices, int64_t batch) {
  if (indices.rank() < 1) {
    return refuse(Code::kRankMismatch, "indices must have rank 1 or more, found ", indices);
  }
  if (batch < 0 || batch >= std::min(x.rank(), indices.rank())) {
    return refuse(Code::kInvalidArgument, "batch_dims ", batch, " must be less than the ranks of ",
                  x, " and indices ", indices);
  }
  if (indices.shape.back() > x.rank() - batch) {
    return refuse(Code::kShapeMismatch, "indices ", indices, " name ", indices.shape.back(),
                  " dims, ", x, " has ", x.rank() - batch, " after the batch");
  }
  return {};
}

Types infer_gather_nd(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& indices = args.inputs[1];
  const int64_t batch = args.attr_int("batch_dims");
  PYC_TRY(require_dtype("indices", indices, kIndices));
  PYC_TRY(check_ranks(x, indices, batch));
  if (!std::equal(x.shape.begin(), x.shape.begin() + batch, indices.shape.begin())) {
    return refuse(Code::kShapeMismatch, "the first ", batch, " dims of ", x, " and indices ",
                  indices, " differ");
  }
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  const auto named = x.shape.begin() + batch;
  shape.insert(shape.end(), named + indices.shape.back(), x.shape.end());
  const bool selects = std::find(shape.begin(), shape.end(), 0) == shape.end();
  if (selects && std::find(named, x.shape.end(), 0) != x.shape.end()) {
    return refuse(Code::kShapeMismatch, "", x, " is empty, there is nothing to select");
  }
  return one(x.dtype, std::move(shape));
}

Expr lower_gather_nd(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& x = context.input_type(0);
  const TensorType& indices = context.input_type(1);
  const auto batch = static_cast<size_t>(context.attr_int("batch_dims"));
  const size_t outer = indices.shape.size() - 1;
  Index at = to_index(index.first(batch));
  for (int64_t i = 0; i < indices.shape.back(); ++i) {
    Index from = to_index(index.first(outer));
    from.push_back(context.index(i));
    at.push_back(checked_index(context, 1, context.input(1, from), x.shape[at.size()], i,
                               indices.shape.back()));
  }
  at.insert(at.end(), index.begin() + static_cast<std::ptrdiff_t>(outer), index.end());
  return context.input(0, at);
}

Grads gradient_gather_nd(ir::GraphBuilder& builder, const ir::Node& node,
                         std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  // Indices of all dims from the first on: those of the batch are counted.
  const int64_t batch = b.attrs().attr_int("batch_dims");
  const Shape shape = b.input_type(1).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<ValueId> columns;
  Shape one_column = shape;
  one_column.back() = 1;
  for (int64_t d = 0; d < batch; ++d) {
    const ValueId counted = b.positions(rank, d, shape[static_cast<size_t>(d)]);
    columns.push_back(b.expand(counted, one_column));
  }
  columns.push_back(b.cast(b.input(1), DType::kI64));
  const ValueId indices = b.concat(columns, rank - 1);
  const ValueId none = b.zeros(b.type(b.g()).dtype, b.input_type(0).shape);
  const ValueId of_x =
      b.op("scatter_nd", {none, indices, b.g()}, {{"reduction", std::string("add")}});
  return b.outputs({b.stored(of_x, 0), ir::kNoId});
}

Result<ValueId> draw_gather_nd(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t rank = std::ssize(shape);
  const int64_t batch = d.pick(0, rank - 1);
  const int64_t depth = d.pick(1, rank - batch);
  Shape places(shape.begin(), shape.begin() + batch);
  if (d.flip()) places.push_back(d.pick(1, 4));
  places.push_back(depth);
  int64_t least = shape[static_cast<size_t>(batch)];
  for (int64_t i = 0; i < depth; ++i) {
    least = std::min(least, shape[static_cast<size_t>(batch + i)]);
  }
  const ValueId x = d.tensor(t, shape);
  return d.op({x, d.indices(places, -least, least - 1)}, {{"batch_dims", batch}});
}

}  // namespace

const ir::OpDef& op_gather_nd() {
  static const ir::OpDef def{
      .name = "gather_nd",
      .summary =
          "Slices of x picked by rows of indices, each naming places in the dims after the "
          "batch; negative ones count from the end.",
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {optional("batch_dims", int64_t{0})},
      .infer = infer_gather_nd,
      .lower = lower_gather_nd,
      .traits = {.moves_data = true},
      .gradient = gradient_gather_nd,
      .onnx = {.name = "GatherND", .attrs = "batch_dims"},
      .draw = {.node = draw_gather_nd},
  };
  return def;
}

}  // namespace pyc::ops
