#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Types infer_pow(const InferArgs& args) {
  const TensorType& base = args.inputs[0];
  const TensorType& exponent = args.inputs[1];
  PYC_TRY(require_dtype("the base", base, kNumbers));
  PYC_TRY(require_dtype("the exponent", exponent, kNumbers));
  auto shape = ir::broadcast_shapes(base.shape, exponent.shape);
  if (!shape.ok()) {
    return refuse(Code::kShapeMismatch, "shapes do not broadcast: ", base, " and ", exponent);
  }
  return one(base.dtype, std::move(*shape));
}

// x to the power of an integer, by squaring; wraps like every product of integers.
Expr integer_power(Expr x, Expr n) {
  const DType t = n.dtype();
  const Expr one = like(x, 1.0);
  const Expr size = is_signed_int(t) ? abs(n) : n;
  Expr result = one;
  Expr square = x;
  for (int64_t bit = 0; bit < dtype_size(t) * 8; ++bit) {
    const Expr wanted = shr(size, like(n, static_cast<double>(bit))) & like(n, 1.0);
    result = select(eq(wanted, like(n, 0.0)), result, result * square);
    square = square * square;
  }
  if (!is_signed_int(t)) return result;
  // 1 / x^|n| without its fraction.
  const Expr zero = like(x, 0.0);
  Expr inverse = select(eq(x, one), one, zero);
  if (is_signed_int(x.dtype())) {
    const Expr even = eq(n & like(n, 1.0), like(n, 0.0));
    inverse = select(eq(x, like(x, -1.0)), select(even, one, x), inverse);
  }
  return select(lt(n, like(n, 0.0)), inverse, result);
}

// An integer to a float: exact as long as the exponent is an integer, else rounded to f64.
Expr mixed_power(Expr x, Expr y) {
  const Expr exponent = convert(y, DType::kF64);
  const Expr rough = convert(loop::pow(convert(x, DType::kF64), exponent), x.dtype());
  const Expr small = lt(abs(exponent), like(exponent, 2147483648.0));
  const Expr whole = eq(trunc(exponent), exponent) & small;
  return select(whole, integer_power(x, convert(exponent, DType::kI32)), rough);
}

bool fits_f32(DType t) { return t == DType::kF32 || (is_int(t) && dtype_size(t) <= 2); }

Expr lower_pow(LowerContext& context, int, std::span<const Expr> index) {
  const Expr x = wide_operand(context, 0, index);
  const Expr y = wide_operand(context, 1, index);
  if (is_int(x.dtype())) {
    return rounded(context, is_int(y.dtype()) ? integer_power(x, y) : mixed_power(x, y));
  }
  const DType t = fits_f32(x.dtype()) && fits_f32(y.dtype()) ? DType::kF32 : DType::kF64;
  return rounded(context, loop::pow(convert(x, t), convert(y, t)));
}

Grads gradient_pow(ir::GraphBuilder& builder, const ir::Node& node,
                   std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  // b·a^(b-1), 0 for b = 0; a^b·log(a), 0 for a = 0 and b >= 0.
  const ValueId a = b.x(0);
  const ValueId exponent =
      is_float(b.input_type(1).dtype) ? b.x(1) : b.cast(b.input(1), DType::kF64);
  const DType t = b.type(a).dtype;
  const ValueId slope = b.mul(b.cast(exponent, t), b.op("pow", {a, b.shift(exponent, -1.0)}));
  const ValueId of_a = b.except(b.is(exponent, 0.0), b.mul(b.g(), slope));
  if (!is_float(b.input_type(1).dtype)) return b.outputs({b.to_input(of_a, 0), ir::kNoId});
  const ValueId zero = b.scalar_like(exponent, 0.0);
  const ValueId flat = b.op("logical_and", {b.is(a, 0.0), b.op("greater_equal", {exponent, zero})});
  const ValueId log = b.fn("log", b.where(flat, b.scalar_like(a, 1.0), a));
  const ValueId of_b = b.except(flat, b.mul(b.g(), b.mul(b.y(), log)));
  return b.outputs({b.to_input(of_a, 0), b.to_input(of_b, 1)});
}

Result<ValueId> draw_pow(Draw& d, DType t) {
  const Shape shape = d.shape();
  const DType exponent = d.flip() ? t : d.choose({DType::kF32, DType::kI32, DType::kI64});
  const ValueId x = d.tensor(t, shape);
  return d.op({x, d.tensor_in(exponent, d.broadcastable(shape), 0.0, 3.0)});
}

}  // namespace

const ir::OpDef& op_pow() {
  static const ir::OpDef def{
      .name = "pow",
      .summary =
          "a to the power of b, broadcast, with a's dtype; b may have another one. Integer "
          "powers wrap; negative ones truncate 1 / a^-b, 0 for a = 0.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = infer_pow,
      .lower = lower_pow,
      .traits = {.elementwise = true},
      .gradient = gradient_pow,
      .onnx = {.name = "Pow", .since = 7, .dtypes = "f16 bf16 f32 f64 i32 i64"},
      .draw = {.node = draw_pow},
  };
  return def;
}

}  // namespace pyc::ops
