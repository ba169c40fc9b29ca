#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints& scales = args.attr_ints("scales");
  PYC_TRY(require_ints("scales", scales, x.shape.size(), 1, ir::kMaxElements));
  PYC_ASSIGN(Shape shape, scaled_shape(x, scales));
  return one(x.dtype, std::move(shape));
}

Expr lower(LowerContext& context, int, std::span<const Expr> index) {
  const Ints& scales = context.attr_ints("scales");
  Index at;
  for (size_t i = 0; i < index.size(); ++i) {
    at.push_back(floor_div(index[i], context.index(scales[i])));
  }
  return context.input(0, at);
}

}  // namespace

const ir::OpDef& op_resize_nearest() {
  static const ir::OpDef def{
      .name = "resize_nearest",
      .summary = "Each element repeated scales[d] times along dim d.",
      .attrs = {required("scales", ir::AttrKind::kInts)},
      .infer = infer,
      .lower = lower,
  };
  return def;
}

}  // namespace pyc::ops
