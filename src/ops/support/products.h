#pragma once

// What contractions share.

#include "ops/support/infer.h"

namespace pyc::ops {

// The dims in front of the matrix; those of a vector or a matrix are none.
Shape batch_dims(const Shape& shape);

// Attribute `to` of the ops with the trait `product`.
ir::AttrDef wide_result_attr();
// The dtype of such an op's result: its operands', or f32 where f16 and bf16 are not rounded. All
// inputs have the dtype of the first.
Result<DType> product_dtype(const InferArgs& args);

// The shape of numpy's matrix product, or a refusal.
Result<Shape> matmul_shape(const TensorType& a, const TensorType& b);

}  // namespace pyc::ops
