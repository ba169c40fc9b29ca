#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Expr magnitude(Expr x) { return is_unsigned_int(x.dtype()) ? x : loop::abs(x); }

}  // namespace

const ir::OpDef& op_abs() {
  static const ir::OpDef def{
      .name = "abs",
      .summary = "The magnitude; the smallest integer stays itself.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_unary<magnitude>,
  };
  return def;
}

}  // namespace pyc::ops
