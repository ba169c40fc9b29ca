#pragma once

// Scales and zero points of quantize and dequantize: one for all (a scalar or one element), one per
// index of attribute `axis` (rank 1), or one per block of `block_size` along it (the rank of x).

#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {

inline constexpr DTypeClass kQuantized{
    [](DType t) {
      if (is_int(t)) return dtype_size(t) <= 2;
      return is_float(t) && dtype_size(t) == 1 && t != DType::kF8E8M0;
    },
    "an integer dtype of at most 16 bits or a float dtype of 4 or 8"};

std::vector<ir::AttrDef> quant_attrs();

// Checks input 1 (scale) and, where there is one, input 2 (zero point) against input 0.
Status require_scales(const InferArgs& args);

// Where the scale of x's element at `index` is.
Index scale_index(LowerContext& context, std::span<const Expr> index);

// f64 if x or the scale is, else f32.
DType quant_dtype(const LowerContext& context);

}  // namespace pyc::ops
