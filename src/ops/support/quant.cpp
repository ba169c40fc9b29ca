#include "ops/support/quant.h"

namespace pyc::ops {
namespace {

Shape scale_shape(const InferArgs& args, const TensorType& x) {
  const auto axis = static_cast<size_t>(from_front(args.attr_int("axis"), x.rank()));
  const int64_t block = args.attr_int("block_size");
  if (block == 0) return {x.shape[axis]};
  Shape shape = x.shape;
  shape[axis] = (shape[axis] + block - 1) / block;
  return shape;
}

}  // namespace

std::vector<ir::AttrDef> quant_attrs() {
  return {required("to", ir::AttrKind::kDType), optional("axis", int64_t{1}),
          optional("block_size", int64_t{0})};
}

Status require_scales(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& scale = args.inputs[1];
  PYC_TRY(require_dtype("scale", scale, kFloats));
  const int64_t block = args.attr_int("block_size");
  if (block < 0) {
    return refuse(Code::kInvalidArgument, "block_size must not be negative, found ", block);
  }
  if (scale.elements() != 1 || scale.rank() > 1) {
    PYC_TRY(require_axis(args.attr_int("axis"), x));
    const Shape expected = scale_shape(args, x);
    if (scale.shape != expected) {
      return refuse(Code::kShapeMismatch, "scale must have one element or shape ", expected,
                    ", found ", scale);
    }
  }
  if (args.inputs.size() > 2 && args.inputs[2].shape != scale.shape) {
    return refuse(Code::kShapeMismatch, "zero_point must have the shape of scale ", scale,
                  ", found ", args.inputs[2]);
  }
  return {};
}

Index scale_index(LowerContext& context, std::span<const Expr> index) {
  const TensorType& scale = context.input_type(1);
  if (scale.elements() == 1) return Index(scale.shape.size(), context.index(0));
  const auto axis =
      static_cast<size_t>(from_front(context.attr_int("axis"), context.input_type(0).rank()));
  const int64_t block = context.attr_int("block_size");
  if (block == 0) return {index[axis]};
  Index at = to_index(index);
  at[axis] = floor_div(at[axis], context.index(block));
  return at;
}

DType quant_dtype(const LowerContext& context) {
  const bool wide =
      context.input_type(0).dtype == DType::kF64 || context.input_type(1).dtype == DType::kF64;
  return wide ? DType::kF64 : DType::kF32;
}

}  // namespace pyc::ops
