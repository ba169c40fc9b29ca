#include <cmath>

#include "ops/support/elementwise.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

ValueId simplify_min(Patch& patch, const NodeView& node) {
  const ValueId x = drop_neutral(patch, node, HUGE_VAL);  // of integers: the largest
  return x != kNoId ? patch.by("min_neutral", x) : simplify_idempotent(node, patch);
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
  };
  return def;
}

}  // namespace pyc::ops
