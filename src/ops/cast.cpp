#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Types infer(const InferArgs& args) { return one(args.attr_dtype("to"), args.inputs[0].shape); }

Expr lower(LowerContext& context, int, std::span<const Expr> index) {
  return rounded(context, context.input(0, index));
}

}  // namespace

const ir::OpDef& op_cast() {
  static const ir::OpDef def{
      .name = "cast",
      .summary = "x as another dtype: one rounding; float to integer truncates and saturates.",
      .attrs = {required("to", ir::AttrKind::kDType)},
      .infer = infer,
      .lower = lower,
  };
  return def;
}

}  // namespace pyc::ops
