#include <optional>

#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/elementwise.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Types infer_where(const InferArgs& args) {
  const TensorType& condition = args.inputs[0];
  if (condition.dtype != DType::kBool) {
    return refuse(Code::kDtypeMismatch, "the condition must have dtype bool, found ", condition);
  }
  PYC_ASSIGN(auto types, infer_elementwise({args.inputs.subspan(1), args.attrs}, kAnyDType));
  auto shape = ir::broadcast_shapes(types[0].shape, condition.shape);
  if (!shape.ok()) {
    return refuse(Code::kShapeMismatch, "the condition ", condition,
                  " does not broadcast with the values' shape ", types[0].shape);
  }
  return one(types[0].dtype, std::move(*shape));
}

Expr lower_where(LowerContext& context, int, std::span<const Expr> index) {
  const Expr condition = operand(context, 0, index);
  const Expr a = operand(context, 1, index);
  const Expr b = operand(context, 2, index);
  return select(condition, a, b);
}

ValueId simplify_where(Patch& patch, const NodeView& node) {
  if (node.input(1) == node.input(2)) return patch.by("where_same", input_if_same(node, 1));
  const std::optional<Word> condition = patch.uniform(node.input(0));
  if (!condition) return kNoId;
  return patch.by("where_constant", input_if_same(node, *condition != 0 ? 1 : 2));
}

Grads gradient_where(ir::GraphBuilder& builder, const ir::Node& node,
                     std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  return b.outputs({ir::kNoId, b.to_input(b.only(b.input(0), b.g()), 1),
                    b.to_input(b.except(b.input(0), b.g()), 2)});
}

Result<ValueId> draw_where(Draw& d, DType t) {
  const Shape shape = d.shape();
  return d.op({d.tensor(DType::kBool, d.broadcastable(shape)), d.tensor(t, shape),
               d.tensor(t, d.broadcastable(shape))});
}

}  // namespace

const ir::OpDef& op_where() {
  static const ir::OpDef def{
      .name = "where",
      .summary = "a where the condition holds, else b; all three broadcast, bits are kept.",
      .min_inputs = 3,
      .max_inputs = 3,
      .infer = infer_where,
      .lower = lower_where,
      .traits = {.elementwise = true},
      .simplify = simplify_where,
      .gradient = gradient_where,
      .onnx = {.name = "Where"},
      .draw = {.node = draw_where},
  };
  return def;
}

}  // namespace pyc::ops
