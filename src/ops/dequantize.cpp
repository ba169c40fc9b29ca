#include "ops/support/quant.h"

namespace pyc::ops {
namespace {

constexpr DTypeClass kSources{
    [](DType t) { return kQuantized.has(t) || t == DType::kI32; },
    "an integer dtype of at most 32 signed or 16 unsigned bits or a float dtype of 4 or 8"};

Types infer_dequantize(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kSources));
  PYC_TRY(require_dtype("the result", {args.attr_dtype("to"), {}}, kFloats));
  PYC_TRY(require_scales(args));
  if (args.inputs.size() > 2 && args.inputs[2].dtype != x.dtype) {
    return refuse(Code::kDtypeMismatch, "zero_point must have the dtype of x ", x, ", found ",
                  args.inputs[2]);
  }
  return one(args.attr_dtype("to"), x.shape);
}

Expr lower_dequantize(LowerContext& context, int, std::span<const Expr> index) {
  const Index at = scale_index(context, index);
  Expr x = context.input(0, index);
  if (!is_float(x.dtype())) {
    x = convert(x, DType::kI32);
    if (context.inputs() > 2) x = x - convert(context.input(2, at), DType::kI32);
  }
  const DType wide = quant_dtype(context);
  return convert(convert(x, wide) * convert(context.input(1, at), wide),
                 context.output_type(0).dtype);
}

}  // namespace

const ir::OpDef& op_dequantize() {
  static const ir::OpDef def{
      .name = "dequantize",
      .summary = "(x - zero_point) * scale; floats have no zero point.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = quant_attrs(),
      .infer = infer_dequantize,
      .lower = lower_dequantize,
  };
  return def;
}

}  // namespace pyc::ops
