#include "ops/support/backward.h"
#include "ops/support/elementwise.h"
#include "ops/support/onnx.h"

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

Grads gradient_prelu(ir::GraphBuilder& builder, const ir::Node& node,
                     std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const ValueId below = b.less(b.x(0), b.scalar_like(b.x(0), 0.0));
  const ValueId of_x = b.where(below, b.mul(b.g(), b.x(1)), b.g());
  const ValueId of_slope = b.only(below, b.mul(b.g(), b.x(0)));
  return b.outputs({b.to_input(of_x, 0), b.to_input(of_slope, 1)});
}

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
      .gradient = gradient_prelu,
      .onnx = {.name = "PRelu", .since = 7, .dtypes = kOnnxFloatsAndWideInts},
  };
  return def;
}

}  // namespace pyc::ops
