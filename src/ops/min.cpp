#include <cmath>

#include "ops/support/backward.h"
#include "ops/support/elementwise.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

ValueId simplify_min(Patch& patch, const NodeView& node) {
  const ValueId x = drop_neutral(patch, node, HUGE_VAL);  // of integers: the largest
  return x != kNoId ? patch.by("min_neutral", x) : simplify_idempotent(node, patch);
}

Grads gradient_min(ir::GraphBuilder& builder, const ir::Node& node,
                   std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  // Equal operands get half of it each.
  const ValueId half = b.only(b.equal(b.x(0), b.x(1)), b.scale(b.g(), 0.5));
  const ValueId of_a = b.where(b.less(b.x(0), b.x(1)), b.g(), half);
  const ValueId of_b = b.where(b.less(b.x(1), b.x(0)), b.g(), half);
  return b.outputs({b.to_input(of_a, 0), b.to_input(of_b, 1)});
}

}  // namespace

const ir::OpDef& op_min() {
  static const ir::OpDef def{
      .name = "min",
      .summary = "The smaller of a and b, broadcast; NaN wins, -0 < +0.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_binary<loop::min>,
      .traits = {.elementwise = true, .commutative = true},
      .simplify = simplify_min,
      .gradient = gradient_min,
      .onnx = {.name = "Min"},
  };
  return def;
}

}  // namespace pyc::ops
