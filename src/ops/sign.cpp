#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_sign(Expr x) {
  const Expr zero = like(x, 0.0);
  const Expr positive = select(lt(zero, x), like(x, 1.0), zero);
  if (is_unsigned_int(x.dtype())) return positive;
  const Expr result = select(lt(x, zero), like(x, -1.0), positive);
  return is_float(x.dtype()) ? select(ne(x, x), x, result) : result;
}

}  // namespace

const ir::OpDef& op_sign() {
  static const ir::OpDef def{
      .name = "sign",
      .summary = "-1, 0 or 1; +0 for zeros, NaN for NaN.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_unary<formula_sign>,
      .traits = {.elementwise = true},
      .no_gradient = "a step: its derivative is 0 or does not exist",
      .onnx = {.name = "Sign"},
      .draw = {.sharp = true, .lo = -3.0, .hi = 3.0},
  };
  return def;
}

}  // namespace pyc::ops
