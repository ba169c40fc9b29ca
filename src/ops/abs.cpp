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

}  // namespace

const ir::OpDef& op_abs() {
  static const ir::OpDef def{
      .name = "abs",
      .summary = "The magnitude; the smallest integer stays itself.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_unary<magnitude>,
      .traits = {.elementwise = true},
      .simplify = simplify_abs,
  };
  return def;
}

}  // namespace pyc::ops
