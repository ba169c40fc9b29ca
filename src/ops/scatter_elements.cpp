#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/rows.h"
#include "ops/support/scatter.h"
#include "ops/support/scatter_gradient.h"

namespace pyc::ops {
namespace {

Types infer_scatter_elements(const InferArgs& args) {
  PYC_TRY(require_scatter(args));
  const TensorType& data = args.inputs[0];
  const TensorType& indices = args.inputs[1];
  const TensorType& updates = args.inputs[2];
  PYC_TRY(require_axis(args.attr_int("axis"), data));
  PYC_TRY(require_rank("indices", indices, data.rank()));
  if (updates.shape != indices.shape) {
    return refuse(Code::kShapeMismatch, "updates ", updates, " must have the shape of indices ",
                  indices);
  }
  const auto axis = static_cast<size_t>(from_front(args.attr_int("axis"), data.rank()));
  for (size_t d = 0; d < data.shape.size(); ++d) {
    const bool fits = d == axis ? data.shape[d] > 0 || indices.elements() == 0
                                : indices.shape[d] <= data.shape[d];
    if (!fits) {
      return refuse(Code::kShapeMismatch, "indices ", indices, " reach beyond dim ",
                    static_cast<int64_t>(d), " of ", data);
    }
  }
  return one(data.dtype, data.shape);
}

void kernel_scatter_elements(KernelContext& context) {
  const TensorType& data = context.input_type(0);
  const Shape& updates = context.input_type(1).shape;
  each_row(context, data.shape, context.attr_int("axis"), false, [&](const Row& row) {
    const uint32_t out = context.output(0);
    context.each(row.length, Order::kVector, [&](Expr k) {
      const Index at = row.at(k);
      context.store(out, position(context, at, data.shape), context.input(0, at));
    });
    // Updates may be fewer than rows of data.
    Expr inside = loop::constant_int(context.pool(), DType::kBool, 1);
    for (size_t d = 0; d < updates.size(); ++d) {
      if (d != row.axis) inside = inside & lt(row.index[d], context.index(updates[d]));
    }
    if (context.input_type(1).elements() == 0) return;
    context.each(updates[row.axis], Order::kOrdered, [&](Expr u) {
      const Index at = row.at(u);
      const Expr none = zero(context, context.input_type(1).dtype);
      const Expr wanted = context.input_if(1, at, inside, none);
      const Expr target = checked_index(context, 1, wanted, row.length);
      const Expr offset = position(context, row.at(target), data.shape);
      const Expr old = context.load(out, offset);
      const Expr update = context.input_if(2, at, inside, zero(context, data.dtype));
      context.store(out, offset, select(inside, updated(context, old, update), old));
    });
  });
}

Grads gradient_scatter_elements(ir::GraphBuilder& builder, const ir::Node& node,
                                std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const int64_t axis = b.attrs().attr_int("axis");
  const Shape shape = b.input_type(1).shape;
  const int64_t front = from_front(axis, b.input_type(1).rank());
  const int64_t count = shape[static_cast<size_t>(front)];
  const ScatterAccess access{[&](ValueId data) {
                               return b.op("gather_elements", {data, b.input(1)}, {{"axis", axis}});
                             },
                             [&](ValueId data, ValueId updates, std::string_view reduction) {
                               return b.op("scatter_elements", {data, b.input(1), updates},
                                           {{"axis", axis}, {"reduction", std::string(reduction)}});
                             },
                             b.expand(b.positions(b.input_type(1).rank(), front, count), shape)};
  const ScatterGradients result = scatter_gradients(b, access);
  return b.outputs({b.stored(result.data, 0), ir::kNoId, b.stored(result.updates, 2)});
}

Result<ValueId> draw_scatter_elements(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t axis = d.axis(std::ssize(shape));
  const int64_t n = shape[static_cast<size_t>(from_front(axis, std::ssize(shape)))];
  const Shape places =
      drawn_within(d, shape, static_cast<size_t>(from_front(axis, std::ssize(shape))));
  const ValueId x = d.tensor(t, shape);
  const ValueId at = d.indices(places, -n, n - 1);
  return d.op({x, at, d.tensor(t, places)}, {{"axis", axis}, {"reduction", drawn_reduction(d, t)}});
}

}  // namespace

const ir::OpDef& op_scatter_elements() {
  static const ir::OpDef def{
      .name = "scatter_elements",
      .summary =
          "data with updates at indices along an axis, taken in row-major order: the last "
          "one stays, or they are reduced, rounding each time.",
      .min_inputs = 3,
      .max_inputs = 3,
      .attrs = {optional("axis", int64_t{0}), reduction_attr()},
      .infer = infer_scatter_elements,
      .kernel = kernel_scatter_elements,
      .gradient = gradient_scatter_elements,
      .onnx = {.name = "ScatterElements", .attrs = "axis reduction"},
      .draw = {.node = draw_scatter_elements},
  };
  return def;
}

}  // namespace pyc::ops
