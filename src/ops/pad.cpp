#include <algorithm>

#include "ops/support/index.h"
#include "ops/support/infer.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Types infer(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints& pads = args.attr_ints("pads");
  const size_t rank = x.shape.size();
  PYC_TRY(require_ints("pads", pads, 2 * rank, -ir::kMaxElements, ir::kMaxElements));
  Shape shape = x.shape;
  for (size_t i = 0; i < rank; ++i) {
    shape[i] += pads[i] + pads[rank + i];
    if (shape[i] >= 0) continue;
    return refuse(Code::kShapeMismatch, "pads ", pads, " take more from dim ",
                  static_cast<int64_t>(i), " of ", x, " than it has");
  }
  return one(x.dtype, std::move(shape));
}

Expr lower(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& x = context.input_type(0);
  const Ints& pads = context.attr_ints("pads");
  Expr inside = loop::constant_int(context.pool(), DType::kBool, 1);
  Index at;
  for (size_t i = 0; i < index.size(); ++i) {
    at.push_back(index[i] - context.index(pads[i]));
    inside = inside & between(context, at[i], 0, x.shape[i]);
  }
  const Expr value = loop::constant(context.pool(), x.dtype, context.attr_float("value"));
  return context.input_if(0, at, inside, value);
}

ValueId simplify(Patch&, const NodeView& node) {
  const Ints& pads = std::get<Ints>(node.attrs().at("pads"));
  const bool none = std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; });
  return none ? node.input(0) : kNoId;
}

}  // namespace

const ir::OpDef& op_pad() {
  static const ir::OpDef def{
      .name = "pad",
      .summary =
          "x with `value` around it; pads has all begins, then all ends; negative ones crop.",
      .attrs = {required("pads", ir::AttrKind::kInts), optional("value", 0.0)},
      .infer = infer,
      .lower = lower,
      .traits = {.moves_data = true},
      .simplify = simplify,
  };
  return def;
}

}  // namespace pyc::ops
