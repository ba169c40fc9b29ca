#include "ops/support/elementwise.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Types infer(const InferArgs& args) { return one(args.attr_dtype("to"), args.inputs[0].shape); }

Expr lower(LowerContext& context, int, std::span<const Expr> index) {
  return rounded(context, context.input(0, index));
}

// Bits of the significand.
int digits(DType t) {
  switch (t) {
    case DType::kF8E5M2:
      return 3;
    case DType::kF8E4M3FN:
      return 4;
    case DType::kBF16:
      return 8;
    case DType::kF16:
      return 11;
    case DType::kF32:
      return 24;
    case DType::kF64:
      return 53;
    default:
      return 0;
  }
}

// Whether every value of `from` is one of `to`, -0 and infinities included.
bool keeps_values(DType from, DType to) {
  if (from == to) return true;
  if (from == DType::kBool) return is_int(to) || digits(to) > 0;
  const auto bits = static_cast<int>(8 * dtype_size(from)) - (is_signed_int(from) ? 1 : 0);
  if (is_int(from)) {
    const bool wider = dtype_size(to) > dtype_size(from);
    if (is_int(to)) return wider && (is_unsigned_int(from) || is_signed_int(to));
    return bits <= digits(to);
  }
  if (digits(from) == 0 || digits(to) == 0) return false;
  const bool half = from == DType::kF16 || from == DType::kBF16;
  if (is_narrow_float(to)) return !half && dtype_size(from) < dtype_size(to);
  return is_narrow_float(from) || to == DType::kF64;
}

// Whether going from `a` by way of `b` to `c` gives what going from `a` to `c` does.
bool skips_middle(DType a, DType b, DType c) {
  if (is_int(a) && is_int(b) && is_int(c) && dtype_size(b) >= dtype_size(c)) return true;
  if (!keeps_values(a, b)) return false;
  // Integers become integers by their low bits, floats by saturating.
  const bool kinds_differ = !is_float(a) && is_float(b) && is_int(c);
  return !kinds_differ || keeps_values(a, c);
}

ValueId simplify(Patch& patch, const NodeView& node) {
  const DType to = node.type().dtype;
  if (node.input_type(0).dtype == to) return node.input(0);
  const NodeView inner = patch.producer(node.input(0));
  if (!inner.is("cast")) return kNoId;
  const DType from = inner.input_type(0).dtype;
  if (!skips_middle(from, node.input_type(0).dtype, to)) return kNoId;
  return from == to ? inner.input(0) : patch.op("cast", {inner.input(0)}, node.attrs());
}

}  // namespace

const ir::OpDef& op_cast() {
  static const ir::OpDef def{
      .name = "cast",
      .summary = "x as another dtype: one rounding; float to integer truncates and saturates.",
      .attrs = {required("to", ir::AttrKind::kDType)},
      .infer = infer,
      .lower = lower,
      .traits = {.elementwise = true},
      .simplify = simplify,
  };
  return def;
}

}  // namespace pyc::ops
