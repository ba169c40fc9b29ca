#include <limits>

#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula_is_inf(LowerContext& context, Expr x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Expr found = loop::constant_int(context.pool(), DType::kBool, 0);
  if (context.attr_bool("detect_positive")) found = found | eq(x, like(x, kInfinity));
  if (context.attr_bool("detect_negative")) found = found | eq(x, like(x, -kInfinity));
  return found;
}

}  // namespace

const ir::OpDef& op_is_inf() {
  static const ir::OpDef def{
      .name = "is_inf",
      .summary = "Whether x is an infinity of a detected sign.",
      .attrs = {optional("detect_negative", true), optional("detect_positive", true)},
      .infer = [](const InferArgs& args) { return infer_comparison(args, kFloats); },
      .lower = lower_unary<formula_is_inf>,
      .traits = {.elementwise = true},
      .no_gradient = "its result is a bool",
      .onnx = {.name = "IsInf", .attrs = "detect_negative detect_positive"},
      .draw = {.sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
