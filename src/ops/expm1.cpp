#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {

namespace {

ValueId gradient_expm1(Backward& b) { return b.mul(b.g(), b.fn("exp", b.x())); }

}  // namespace

const ir::OpDef& op_expm1() {
  static const ir::OpDef def{
      .name = "expm1",
      .summary = "exp(x) - 1, exact also near 0.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kFloats); },
      .lower = lower_unary<loop::expm1>,
      .traits = {.elementwise = true},
      .gradient = gradient_of_one<gradient_expm1>,
  };
  return def;
}

}  // namespace pyc::ops
