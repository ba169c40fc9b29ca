#include <numbers>

#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_log2(Backward& b) { return b.div(b.g(), b.scale(b.x(), std::numbers::ln2)); }

}  // namespace

const ir::OpDef& op_log2() {
  static const ir::OpDef def{
      .name = "log2",
      .summary = "The logarithm to base 2; NaN below 0.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::log2>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_log2>,
  };
  return def;
}

}  // namespace pyc::ops
