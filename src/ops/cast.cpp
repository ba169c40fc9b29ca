#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Types infer(const InferArgs& args) { return one(args.attr_dtype("to"), args.inputs[0].shape); }

bool is_fp8(DType t) { return t == DType::kF8E4M3FN || t == DType::kF8E5M2; }

// x brought into the finite range of an fp8 type; NaN stays.
Expr clamped(Expr x, DType to) {
  const double largest = to == DType::kF8E4M3FN ? 448.0 : 57344.0;
  const Expr wide = convert(x, compute_dtype(x.dtype()));
  return min(max(wide, like(wide, -largest)), like(wide, largest));
}

Expr lower(LowerContext& context, int, std::span<const Expr> index) {
  const Expr x = context.input(0, index);
  const DType to = context.output_type(0).dtype;
  const bool may_overflow = is_fp8(to) && x.dtype() != to && x.dtype() != DType::kBool;
  return rounded(context, may_overflow && context.attr_bool("saturate") ? clamped(x, to) : x);
}

}  // namespace

const ir::OpDef& op_cast() {
  static const ir::OpDef def{
      .name = "cast",
      .summary =
          "x as another dtype: one rounding; float to integer truncates and saturates; what "
          "is too large for fp8 becomes its largest number, or inf or NaN if saturate is off.",
      .attrs = {optional("saturate", true), required("to", ir::AttrKind::kDType)},
      .infer = infer,
      .lower = lower,
  };
  return def;
}

}  // namespace pyc::ops
