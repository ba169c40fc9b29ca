#include <algorithm>

#include "ops/draw.h"
#include "ops/kernel.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"
#include "ops/support/scatter_gradient.h"

namespace pyc::ops {
namespace {

Types infer_max_unpool(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& indices = args.inputs[1];
  PYC_TRY(require_dtype("indices", indices, kIndices));
  if (indices.shape != x.shape) {
    return refuse(Code::kShapeMismatch, "indices ", indices, " must have the shape of ", x);
  }
  const Ints& shape = args.attr_ints("shape");
  PYC_TRY(require_ints("shape", shape, shape.size(), 0, ir::kMaxElements));
  const TensorType out{x.dtype, shape};
  if (x.elements() > 0 && out.elements() == 0) {
    return refuse(Code::kShapeMismatch, "shape ", out.shape, " has no room for ", x);
  }
  return one(out.dtype, out.shape);
}

void kernel_max_unpool(KernelContext& context) {
  const TensorType& x = context.input_type(0);
  const int64_t elements = context.output_type(0).elements();
  const uint32_t out = context.output(0);
  context.each(elements, Order::kVector,
               [&](Expr i) { context.store(out, i, zero(context, x.dtype)); });
  context.each(x.elements(), Order::kOrdered, [&](Expr i) {
    const Index at = index_at(context, i, x.shape);
    const Expr target = convert(context.input(1, at), DType::kI64);
    context.check_input(1, between(context, target, 0, elements), {.last = elements - 1}, "index");
    const Expr last = context.index(std::max<int64_t>(elements - 1, 0));
    context.store(out, min(max(target, context.index(0)), last), context.input(0, at));
  });
}

Grads gradient_max_unpool(ir::GraphBuilder& builder, const ir::Node& node,
                          std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  // What stands at each place came from the last x written there.
  const int64_t count = b.input_type(0).elements();
  const int64_t elements = b.type(b.g()).elements();
  const ValueId indices = b.reshape(b.input(1), {count, 1});
  const ScatterAccess access{[&](ValueId data) {
                               return b.op("gather_nd", {data, indices});
                             },
                             [&](ValueId data, ValueId updates, std::string_view reduction) {
                               return b.op("scatter_nd", {data, indices, updates},
                                           {{"reduction", std::string(reduction)}});
                             },
                             b.positions(1, 0, count)};
  const ValueId read = access.read(b.reshape(b.g(), {elements}));
  const ValueId of_x = b.only(last_written(b, access, {elements}), read);
  return b.outputs({b.stored(b.reshape(of_x, b.input_type(0).shape), 0), ir::kNoId});
}

Result<ValueId> draw_max_unpool(Draw& d, DType t) {
  const Shape shape{d.pick(1, 2), d.pick(1, 2), d.pick(1, 4), d.pick(1, 5)};
  Shape to = shape;
  to[2] += d.pick(0, 3);
  to[3] += d.pick(0, 3);
  const ValueId x = d.tensor(t, shape);
  const ValueId at =
      d.fresh(DType::kI64, shape, 0.0, static_cast<double>(to[0] * to[1] * to[2] * to[3]));
  return d.op({x, at}, {{"shape", to}});
}

}  // namespace

const ir::OpDef& op_max_unpool() {
  static const ir::OpDef def{
      .name = "max_unpool",
      .summary = "Zeros of a shape with x at the row-major positions in indices.",
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {required("shape", ir::AttrKind::kInts)},
      .infer = infer_max_unpool,
      .kernel = kernel_max_unpool,
      .gradient = gradient_max_unpool,
      .draw = {.node = draw_max_unpool},
  };
  return def;
}

}  // namespace pyc::ops
