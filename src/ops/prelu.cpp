#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Types infer_prelu(const InferArgs& args) {
  PYC_ASSIGN(auto types, infer_elementwise(args, kNumbers));
  if (types[0].shape != args.inputs[0].shape) {
    return refuse(Code::kShapeMismatch, "the slope ", args.inputs[1], " does not broadcast to x ",
                  args.inputs[0]);
  }
  return types;
}

Expr formula_prelu(Expr x, Expr slope) { return select(lt(x, like(x, 0.0)), slope * x, x); }

}  // namespace

const ir::OpDef& op_prelu() {
  static const ir::OpDef def{
      .name = "prelu",
      .summary = "x, or slope * x below 0; the slope is broadcast to x.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = infer_prelu,
      .lower = lower_binary<formula_prelu>,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
