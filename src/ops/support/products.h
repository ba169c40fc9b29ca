#pragma once

// What contractions share.

#include "ops/support/infer.h"

namespace pyc::ops {

// The dims in front of the matrix; those of a vector or a matrix are none.
Shape batch_dims(const Shape& shape);

// The shape of numpy's matrix product, or a refusal.
Result<Shape> matmul_shape(const TensorType& a, const TensorType& b);

}  // namespace pyc::ops
