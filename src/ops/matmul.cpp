#include "ops/support/elementwise.h"
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
      .traits = {.product = true},
  };
  return def;
}

}  // namespace pyc::ops
