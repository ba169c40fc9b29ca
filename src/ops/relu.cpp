#include "ops/support/backward.h"
#include "ops/support/elementwise.h"
#include "ops/support/onnx.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Expr formula_relu(Expr x) { return max(x, like(x, 0.0)); }

ValueId simplify_relu(Patch& patch, const NodeView& node) {
  const NodeView inner = patch.producer(node.input(0));
  if (inner.is("relu")) return patch.by("relu_relu", node.input(0));
  // The magnitude of the smallest integer is negative.
  if (!inner.is("abs") || !is_float(node.type().dtype)) return kNoId;
  return patch.by("relu_abs", node.input(0));
}

ValueId gradient_relu(Backward& b) {
  // 0 at 0.
  return b.only(b.less(b.scalar_like(b.x(), 0.0), b.x()), b.g());
}

}  // namespace

const ir::OpDef& op_relu() {
  static const ir::OpDef def{
      .name = "relu",
      .summary = "max(x, +0); relu(-0) = +0, relu(NaN) = NaN.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kSigned); },
      .lower = lower_unary<formula_relu>,
      .traits = {.elementwise = true},
      .simplify = simplify_relu,
      .gradient = gradient_of_one<gradient_relu>,
      .onnx = {.name = "Relu", .dtypes = kOnnxSigned},
  };
  return def;
}

}  // namespace pyc::ops
