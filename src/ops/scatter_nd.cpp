#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/rows.h"
#include "ops/support/scatter.h"
#include "ops/support/scatter_gradient.h"

namespace pyc::ops {
namespace {

Types infer_scatter_nd(const InferArgs& args) {
  PYC_TRY(require_scatter(args));
  const TensorType& data = args.inputs[0];
  const TensorType& indices = args.inputs[1];
  const TensorType& updates = args.inputs[2];
  if (indices.rank() < 1 || indices.shape.back() > data.rank()) {
    return refuse(Code::kShapeMismatch, "the last dim of indices ", indices,
                  " must count leading dims of ", data);
  }
  const int64_t depth = indices.shape.back();
  Shape expected(indices.shape.begin(), indices.shape.end() - 1);
  expected.insert(expected.end(), data.shape.begin() + depth, data.shape.end());
  if (updates.shape != expected) {
    return refuse(Code::kShapeMismatch, "updates must have shape ", expected, ", found ", updates);
  }
  for (int64_t d = 0; d < depth; ++d) {
    if (data.shape[static_cast<size_t>(d)] == 0 && updates.elements() > 0) {
      return refuse(Code::kShapeMismatch, "dim ", d, " of ", data, " is empty");
    }
  }
  return one(data.dtype, data.shape);
}

Index joined_index(Index head, const Index& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

// Indices pick slices: the trailing dims of data. All but the last of those are parallel.
void kernel_scatter_nd(KernelContext& context) {
  const TensorType& data = context.input_type(0);
  const Shape& indices = context.input_type(1).shape;
  const auto depth = static_cast<size_t>(indices.back());
  const Shape picked(data.shape.begin(), data.shape.begin() + static_cast<ptrdiff_t>(depth));
  const Shape slices(indices.begin(), indices.end() - 1);
  const bool has_lanes = depth < data.shape.size();
  Index outer;
  for (size_t d = depth; has_lanes && d + 1 < data.shape.size(); ++d) {
    outer.push_back(context.parallel(data.shape[d]));
  }
  const auto within = [&](Expr lane) { return has_lanes ? joined_index(outer, {lane}) : outer; };
  const auto each_lane = [&](Order order, const std::function<void(Expr)>& body) {
    if (!has_lanes) return body(context.index(0));
    context.each(data.shape.back(), order, body);
  };
  const auto offset_of = [&](const Index& head, Expr lane) {
    return position(context, joined_index(head, within(lane)), data.shape);
  };
  const uint32_t out = context.output(0);
  const auto count = [](const Shape& shape) { return TensorType{DType::kI64, shape}.elements(); };

  context.each(count(picked), has_lanes ? Order::kSerial : Order::kVector, [&](Expr p) {
    const Index head = index_at(context, p, picked);
    each_lane(Order::kVector, [&](Expr lane) {
      context.store(out, offset_of(head, lane), context.input(0, joined_index(head, within(lane))));
    });
  });
  if (context.input_type(2).elements() == 0) return;
  context.each(count(slices), Order::kOrdered, [&](Expr u) {
    const Index slice = index_at(context, u, slices);
    Index target;
    for (size_t d = 0; d < depth; ++d) {
      const Expr wanted =
          context.input(1, joined_index(slice, {context.index(static_cast<int64_t>(d))}));
      target.push_back(checked_index(context, 1, wanted, picked[d], static_cast<int64_t>(d),
                                     static_cast<int64_t>(depth)));
    }
    each_lane(combines(context) ? Order::kOrdered : Order::kVector, [&](Expr lane) {
      const Expr offset = offset_of(target, lane);
      const Expr update = context.input(2, joined_index(slice, within(lane)));
      const Expr old = combines(context) ? context.load(out, offset) : update;
      context.store(out, offset, updated(context, old, update));
    });
  });
}

Grads gradient_scatter_nd(ir::GraphBuilder& builder, const ir::Node& node,
                          std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  Shape slices = b.input_type(1).shape;
  slices.pop_back();
  const int64_t count = TensorType{DType::kI64, slices}.elements();
  const Shape updates_shape = b.input_type(2).shape;
  slices.resize(updates_shape.size(), 1);
  const ScatterAccess access{[&](ValueId data) {
                               return b.op("gather_nd", {data, b.input(1)});
                             },
                             [&](ValueId data, ValueId updates, std::string_view reduction) {
                               return b.op("scatter_nd", {data, b.input(1), updates},
                                           {{"reduction", std::string(reduction)}});
                             },
                             b.expand(b.reshape(b.positions(1, 0, count), slices), updates_shape)};
  const ScatterGradients result = scatter_gradients(b, access);
  return b.outputs({b.stored(result.data, 0), ir::kNoId, b.stored(result.updates, 2)});
}

Result<ValueId> draw_scatter_nd(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t depth = d.pick(1, std::ssize(shape));
  int64_t least = shape[0];
  for (int64_t i = 0; i < depth; ++i) least = std::min(least, shape[static_cast<size_t>(i)]);
  Shape updates = d.shape(0, 2, 1);
  for (int64_t& n : updates) n = std::min<int64_t>(n, 4);
  Shape places = updates;
  places.push_back(depth);
  updates.insert(updates.end(), shape.begin() + depth, shape.end());
  const ValueId x = d.tensor(t, shape);
  const ValueId at = d.indices(places, -least, least - 1);
  return d.op({x, at, d.tensor(t, updates)}, {{"reduction", drawn_reduction(d, t)}});
}

}  // namespace

const ir::OpDef& op_scatter_nd() {
  static const ir::OpDef def{
      .name = "scatter_nd",
      .summary =
          "data with slices replaced by updates, each at the leading index in a row of "
          "indices, in row-major order; or reduced, rounding each time.",
      .min_inputs = 3,
      .max_inputs = 3,
      .attrs = {reduction_attr()},
      .infer = infer_scatter_nd,
      .kernel = kernel_scatter_nd,
      .gradient = gradient_scatter_nd,
      .onnx = {.name = "ScatterND", .attrs = "reduction"},
      .draw = {.node = draw_scatter_nd},
  };
  return def;
}

}  // namespace pyc::ops
