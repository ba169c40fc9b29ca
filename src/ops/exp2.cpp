#include <numbers>

#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_exp2(Backward& b) { return b.mul(b.g(), b.scale(b.y(), std::numbers::ln2)); }

}  // namespace

const ir::OpDef& op_exp2() {
  static const ir::OpDef def{
      .name = "exp2",
      .summary = "2 to the power of x.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::exp2>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_exp2>,
  };
  return def;
}

}  // namespace pyc::ops
