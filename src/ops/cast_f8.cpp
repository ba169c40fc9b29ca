#include <cmath>

#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

bool is_f8(DType t) { return is_float(t) && dtype_bits(t) == 8; }

Types infer(const InferArgs& args) {
  if (!is_f8(args.attr_dtype("to"))) {
    return refuse(Code::kInvalidArgument, "to must be a float dtype of 8 bits, found ",
                  args.attr_dtype("to"));
  }
  const std::string& mode = args.attr_string("round_mode");
  if (mode != "up" && mode != "down" && mode != "nearest") {
    return refuse(Code::kInvalidArgument, "round_mode must be up, down or nearest, found '", mode,
                  "'");
  }
  return one(args.attr_dtype("to"), args.inputs[0].shape);
}

double largest(DType t) {
  switch (t) {
    case DType::kF8E4M3FN:
      return 448.0;
    case DType::kF8E4M3FNUZ:
      return 240.0;
    default:
      return 57344.0;
  }
}

// A positive number with its fraction cut off, or rounded to the next power of two from 1.5 on.
Expr power_of_two(Expr x, bool nearest) {
  loop::Pool& pool = *x.pool;
  const auto bits = [&](Word w) { return loop::constant_bits(pool, DType::kU64, w); };
  Expr word = bitcast(x, DType::kU64);
  if (nearest) word = word + bits(Word{1} << 51);
  return bitcast(word & bits(Word{0x7FF} << 52), DType::kF64);
}

// f8e8m0 by its exponent. In f64 every number of the narrower types and of f8e8m0 is normal.
Expr to_e8m0(LowerContext& context, Expr x) {
  const std::string& mode = context.attr_string("round_mode");
  const bool saturates = context.attr_bool("saturate");
  if (mode == "up" && !saturates) return x;
  Expr wide = convert(x, DType::kF64);
  const Expr least = like(wide, std::ldexp(1.0, -127));
  // NaN and what is negative stay as they are, and are NaN in the end.
  const Expr is_number = ge(wide, like(wide, 0.0));
  Expr y = wide;
  if (saturates) y = max(y, least);
  if (mode != "up") y = select(le(least, y), power_of_two(y, mode == "nearest"), y);
  if (saturates) y = min(y, like(wide, std::ldexp(1.0, 127)));
  return select(is_number, y, wide);
}

Expr lower(LowerContext& context, int, std::span<const Expr> index) {
  const DType to = context.attr_dtype("to");
  Expr x = context.input(0, index);
  const DType from = x.dtype();
  if (to == DType::kF8E8M0 && from != to) return rounded(context, to_e8m0(context, x));
  if (from != to && context.attr_bool("saturate")) {
    const double limit = largest(to);
    // Exact for every integer that does not saturate.
    x = convert(x, is_float(from) ? compute_dtype(from) : DType::kF64);
    x = min(max(x, like(x, -limit)), like(x, limit));
  }
  return rounded(context, x);
}

}  // namespace

const ir::OpDef& op_cast_f8() {
  static const ir::OpDef def{
      .name = "cast_f8",
      .summary =
          "cast to a float dtype of 8 bits, if asked with the largest number for what is "
          "beyond it; round_mode (up, down, nearest) is for f8e8m0.",
      .attrs = {required("to", ir::AttrKind::kDType), optional("saturate", true),
                optional("round_mode", std::string("up"))},
      .infer = infer,
      .lower = lower,
  };
  return def;
}

}  // namespace pyc::ops
