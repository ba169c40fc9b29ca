#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_log1p(Backward& b) { return b.div(b.g(), b.shift(b.x(), 1.0)); }

}  // namespace

const ir::OpDef& op_log1p() {
  static const ir::OpDef def{
      .name = "log1p",
      .summary = "log(1 + x), exact also near 0; NaN below -1.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::log1p>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_log1p>,
  };
  return def;
}

}  // namespace pyc::ops
