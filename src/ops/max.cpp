#include <cmath>

#include "ops/support/elementwise.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

ValueId simplify_max(Patch& patch, const NodeView& node) {
  const ValueId x = drop_neutral(patch, node, -HUGE_VAL);  // of integers: the smallest
  return x != kNoId ? patch.by("max_neutral", x) : simplify_idempotent(node, patch);
}

}  // namespace

const ir::OpDef& op_max() {
  static const ir::OpDef def{
      .name = "max",
      .summary = "The larger of a and b, broadcast; NaN wins, -0 < +0.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_binary<loop::max>,
      .traits = {.elementwise = true, .commutative = true},
      .simplify = simplify_max,
  };
  return def;
}

}  // namespace pyc::ops
