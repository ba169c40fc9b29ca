#include "ops/support/products.h"

namespace pyc::ops {

ir::AttrDef wide_result_attr() { return ir::AttrDef::or_absent("to", ir::AttrKind::kDType); }

Result<DType> product_dtype(const InferArgs& args) {
  const DType from = args.inputs[0].dtype;
  if (!args.has("to")) return from;
  const DType to = args.attr_dtype("to");
  if (to != DType::kF32) {
    return refuse(Code::kDtypeMismatch, "to must be f32, found ", to);
  }
  if (is_half(from)) return to;
  return refuse(Code::kDtypeMismatch, "only products of f16 or bf16 have to, found ",
                args.inputs[0]);
}

Shape batch_dims(const Shape& shape) {
  if (shape.size() <= 2) return {};
  return {shape.begin(), shape.end() - 2};
}

Result<Shape> matmul_shape(const TensorType& a, const TensorType& b) {
  if (a.rank() == 0 || b.rank() == 0) {
    return refuse(Code::kRankMismatch, "operands must have rank 1 or more, found ", a, " and ", b);
  }
  const int64_t ka = a.shape.back();
  const int64_t kb = b.rank() == 1 ? b.shape[0] : b.shape[b.shape.size() - 2];
  if (ka != kb) {
    return refuse(Code::kShapeMismatch, "inner dims differ: lhs ", a, " has ", ka, ", rhs ", b,
                  " has ", kb);
  }
  auto shape = ir::broadcast_shapes(batch_dims(a.shape), batch_dims(b.shape));
  if (!shape.ok()) {
    return refuse(Code::kShapeMismatch, "batch dims do not broadcast: lhs ", a, ", rhs ", b);
  }
  if (a.rank() > 1) shape->push_back(a.shape[a.shape.size() - 2]);
  if (b.rank() > 1) shape->push_back(b.shape.back());
  return shape;
}

}  // namespace pyc::ops
