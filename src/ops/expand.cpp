#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/elementwise.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Types infer_expand(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType y{x.dtype, args.attr_ints("shape")};
  PYC_TRY(ir::check_type(y));
  const auto joined = ir::broadcast_shapes(x.shape, y.shape);
  if (!joined.ok() || *joined != y.shape) {
    return refuse(Code::kShapeMismatch, "", x, " does not broadcast to shape ", y.shape);
  }
  return one(y.dtype, y.shape);
}

Expr lower_expand(LowerContext& context, int, std::span<const Expr> index) {
  return operand(context, 0, index);
}

ValueId simplify_expand(Patch& patch, const NodeView& node) {
  if (const ValueId x = input_if_same(node, 0); x != kNoId) return patch.by("expand_same", x);
  const NodeView inner = patch.producer(node.input(0));
  if (!inner.is("expand")) return kNoId;
  return patch.by("expand_expand", patch.op("expand", {inner.input(0)}, node.attrs()));
}

ValueId gradient_expand(Backward& b) { return b.sum_to(b.g(), b.input_type(0).shape); }

Result<ValueId> draw_expand(Draw& d, DType t) {
  const Shape to = d.shape();
  return d.op({d.tensor(t, d.broadcastable(to))}, {{"shape", to}});
}

}  // namespace

const ir::OpDef& op_expand() {
  static const ir::OpDef def{
      .name = "expand",
      .summary = "x broadcast to a shape.",
      .attrs = {required("shape", ir::AttrKind::kInts)},
      .infer = infer_expand,
      .lower = lower_expand,
      .traits = {.moves_data = true},
      .simplify = simplify_expand,
      .gradient = gradient_of_one<gradient_expand>,
      .draw = {.node = draw_expand},
  };
  return def;
}

}  // namespace pyc::ops
