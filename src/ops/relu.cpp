#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr formula(Expr x) { return max(x, like(x, 0.0)); }

}  // namespace

const ir::OpDef& op_relu() {
  static const ir::OpDef def{
      .name = "relu",
      .summary = "max(x, +0); relu(-0) = +0, relu(NaN) = NaN.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kSigned); },
      .lower = lower_unary<formula>,
  };
  return def;
}

}  // namespace pyc::ops
