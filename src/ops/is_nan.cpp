#include "ops/support/elementwise.h"

namespace pyc::ops {

const ir::OpDef& op_is_nan() {
  static const ir::OpDef def{
      .name = "is_nan",
      .summary = "Whether x is NaN.",
      .infer = [](const InferArgs& args) { return infer_comparison(args, kFloats); },
      .lower = lower_unary<[](Expr x) { return ne(x, x); }>,
      .traits = {.elementwise = true},
      .no_gradient = "its result is a bool",
      .onnx = {.name = "IsNaN"},
      .draw = {.sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
