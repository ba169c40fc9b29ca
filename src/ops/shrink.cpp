#include "ops/support/backward.h"
#include "ops/support/elementwise.h"
#include "ops/support/onnx.h"

namespace pyc::ops {
namespace {

Expr formula_shrink(LowerContext& context, Expr x) {
  const double lambd = context.attr_float("lambd");
  const double bias = context.attr_float("bias");
  const Expr above = select(lt(like(x, lambd), x), x - bias, like(x, 0.0));
  return select(lt(x, like(x, -lambd)), x + bias, above);
}

ValueId gradient_shrink(Backward& b) {
  const double lambd = b.attrs().attr_float("lambd");
  const ValueId below = b.less(b.x(), b.scalar_like(b.x(), -lambd));
  const ValueId above = b.less(b.scalar_like(b.x(), lambd), b.x());
  return b.only(b.op("logical_or", {below, above}), b.g());
}

}  // namespace

const ir::OpDef& op_shrink() {
  static const ir::OpDef def{
      .name = "shrink",
      .summary =
          "x + bias below -lambd, x - bias above lambd, else 0; 0 for NaN. Integers truncate both.",
      .attrs = {optional("bias", 0.0), optional("lambd", 0.5)},
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_unary<formula_shrink>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_shrink>,
      .onnx = {.name = "Shrink", .attrs = "bias lambd", .dtypes = kOnnxNumbersButBf16},
      .draw = {.sharp = true, .lo = -3.0, .hi = 3.0},
  };
  return def;
}

}  // namespace pyc::ops
