#include "ops/support/backward.h"
#include "ops/support/elementwise.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Expr magnitude(Expr x) { return is_unsigned_int(x.dtype()) ? x : loop::abs(x); }

ValueId simplify_abs(Patch& patch, const NodeView& node) {
  if (is_unsigned_int(node.type().dtype)) return patch.by("abs_unsigned", node.input(0));
  const NodeView inner = patch.producer(node.input(0));
  if (inner.is("abs")) return patch.by("abs_abs", node.input(0));
  if (inner.is("relu")) return patch.by("abs_relu", node.input(0));
  if (inner.is("neg")) return patch.by("abs_neg", patch.op("abs", {inner.input(0)}));
  return kNoId;
}

ValueId gradient_abs(Backward& b) {
  // 0 at 0.
  const ValueId zero = b.scalar_like(b.x(), 0.0);
  return b.where(b.less(b.x(), zero), b.neg(b.g()), b.except(b.equal(b.x(), zero), b.g()));
}

}  // namespace

const ir::OpDef& op_abs() {
  static const ir::OpDef def{
      .name = "abs",
      .summary = "The magnitude; the smallest integer stays itself.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_unary<magnitude>,
      .traits = {.elementwise = true},
      .simplify = simplify_abs,
      .gradient = gradient_of_one<gradient_abs>,
      .onnx = {.name = "Abs"},
  };
  return def;
}

}  // namespace pyc::ops
