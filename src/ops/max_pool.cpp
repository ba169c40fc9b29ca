#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
#include "ops/support/window.h"

namespace pyc::ops {
namespace {

Expr lower_max_pool(LowerContext& context, int, std::span<const Expr> index) {
  const Window window = pool_window(context);
  const auto term = [&](std::span<const Expr> k) { return pool_term(context, window, index, k); };
  return rounded(
      context, context.reduce(loop::ReduceKind::kExact, loop::ReduceOp::kMax, window.kernel, term));
}

ValueId gradient_max_pool(Backward& b) {
  // To the first largest element of each window.
  const Shape shape = b.input_type(0).shape;
  const int64_t rows = shape[0] * shape[1];
  const int64_t plane = TensorType{DType::kU8, planes_of(b.input_type(0))}.elements();
  const ValueId places = b.op("max_pool_indices", {b.input(0)}, b.node_attrs());
  const int64_t windows = TensorType{DType::kU8, planes_of(b.type(places))}.elements();
  const ValueId padding = b.less(places, b.scalar_like(places, 0.0));
  const ValueId in_plane = b.op("mod", {places, b.scalar_like(places, static_cast<double>(plane))});
  const ValueId updates = b.except(padding, b.g());
  const ValueId sums =
      b.op("scatter_elements",
           {b.zeros(b.type(updates).dtype, {rows, plane}), b.reshape(in_plane, {rows, windows}),
            b.reshape(updates, {rows, windows})},
           {{"axis", int64_t{1}}, {"reduction", std::string("add")}});
  return b.reshape(sums, shape);
}

}  // namespace

const ir::OpDef& op_max_pool() {
  static const ir::OpDef def{
      .name = "max_pool",
      .summary =
          "The largest of each window of x (NC, planes); padding never wins, a window of "
          "padding only has the lowest value.",
      .attrs = pool_attrs(),
      .infer = [](const InferArgs& args) { return infer_pool(args, kNumbers); },
      .lower = lower_max_pool,
      .gradient = gradient_of_one<gradient_max_pool>,
      .onnx = {.name = "MaxPool",
               .attrs = "kernel_shape=kernel strides pads dilations",
               .dtypes = "f16 bf16 f32 f64 i8 u8"},
      .draw = {.node = draw_pool},
  };
  return def;
}

}  // namespace pyc::ops
