#include <cstddef>
#include <utility>

#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
#include "ops/support/onnx.h"
#include "ops/support/products.h"

namespace pyc::ops {
namespace {

Types infer_matmul(const InferArgs& args) {
  const TensorType& a = args.inputs[0];
  const TensorType& b = args.inputs[1];
  PYC_TRY(require_dtype("lhs", a, kNumbers));
  PYC_TRY(require_same_dtype(a, b));
  PYC_ASSIGN(Shape shape, matmul_shape(a, b));
  PYC_ASSIGN(const DType to, product_dtype(args));
  return one(to, std::move(shape));
}

Expr lower_matmul(LowerContext& context, int, std::span<const Expr> index) {
  const Shape& a = context.input_type(0).shape;
  const Shape& b = context.input_type(1).shape;
  const size_t matrix_dims = (a.size() > 1 ? 1 : 0) + (b.size() > 1 ? 1 : 0);
  const auto batch = index.first(index.size() - matrix_dims);
  const auto term = [&](std::span<const Expr> k) {
    Index at_a = broadcast_index(context, batch, batch_dims(a));
    if (a.size() > 1) at_a.push_back(index[batch.size()]);
    at_a.push_back(k[0]);
    Index at_b = broadcast_index(context, batch, batch_dims(b));
    at_b.push_back(k[0]);
    if (b.size() > 1) at_b.push_back(index.back());
    return ReduceTerm{.value = context.input_compute(0, at_a),
                      .value2 = context.input_compute(1, at_b)};
  };
  const int64_t extent = a.back();
  return rounded(context, context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum,
                                         {&extent, 1}, term, kChainSegment));
}

ValueId swap_last(Backward& b, ValueId v) {
  Ints perm = int_range(0, b.type(v).rank());
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return b.transpose(v, perm);
}

Grads gradient_matmul(ir::GraphBuilder& builder, const ir::Node& node,
                      std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  // Operands with both dims of a matrix; narrow ones are multiplied as they are.
  const Shape result = b.type(b.output(0)).shape;
  const auto matrix = [&](size_t i) {
    Shape shape = b.input_type(i).shape;
    if (shape.size() > 1) return shape;
    return i == 0 ? Shape{1, shape[0]} : Shape{shape[0], 1};
  };
  const Shape left = matrix(0);
  const Shape right = matrix(1);
  const size_t matrix_dims =
      (b.input_type(0).rank() > 1 ? 1 : 0) + (b.input_type(1).rank() > 1 ? 1 : 0);
  Shape places(result.begin(), result.end() - static_cast<std::ptrdiff_t>(matrix_dims));
  places.insert(places.end(), {left[left.size() - 2], right.back()});
  const ValueId g = b.reshape(b.stored(b.g(), 0), places);
  const ValueId a = b.reshape(b.input(0), left);
  const ValueId w = b.reshape(b.input(1), right);
  const ValueId of_a = b.sum_to(b.op("matmul", {g, swap_last(b, w)}), left);
  ValueId of_w = ir::kNoId;
  if (right.size() == 2 && left.size() > 2) {
    // One product over all rows of all batches.
    const ValueId rows = b.reshape(a, {-1, left.back()});
    of_w =
        b.op("matmul", {swap_last(b, rows), b.reshape(g, {b.type(rows).shape[0], right.back()})});
  } else {
    of_w = b.sum_to(b.op("matmul", {swap_last(b, a), g}), right);
  }
  return b.outputs(
      {b.reshape(of_a, b.input_type(0).shape), b.reshape(of_w, b.input_type(1).shape)});
}

Result<ValueId> draw_matmul(Draw& d, DType t) {
  const DrawnProduct p = drawn_product(d);
  return d.op({d.tensor(t, p.a), d.tensor(t, p.b)});
}

}  // namespace

const ir::OpDef& op_matmul() {
  static const ir::OpDef def{
      .name = "matmul",
      .summary = "Numpy's matrix product: leading dims broadcast, rank 1 is a row or a column.",
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {wide_result_attr()},
      .infer = infer_matmul,
      .lower = lower_matmul,
      .traits = {.product = true, .factors = 2},
      .on_unit = [](const InferArgs&) { return true; },
      .gradient = gradient_matmul,
      .onnx = {.name = "MatMul", .dtypes = kOnnxFloatsAndWideInts},
      .draw = {.node = draw_matmul},
  };
  return def;
}

}  // namespace pyc::ops
