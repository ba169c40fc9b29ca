#include "ops/support/backward.h"
#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_softmax(const InferArgs& args) { return infer_along_axis(args, kFloats); }

Result<std::vector<ValueId>> decompose_softmax(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const ir::Attrs axes{{"axes", Ints{std::get<int64_t>(node.attrs.at("axis"))}}};
  const ValueId x = c.wide_input(0);
  const ValueId e = c.op("exp", {c.op("sub", {x, c.op("reduce_max", {x}, axes)})});
  const ValueId y = c.mul(e, c.op("reciprocal", {c.op("reduce_sum", {e}, axes)}));
  return c.outputs({c.cast(y, c.input_type(0).dtype)});
}

ValueId gradient_softmax(Backward& b) {
  const ValueId mean = b.sum(b.mul(b.g(), b.y()), {b.attrs().attr_int("axis")}, true);
  return b.mul(b.y(), b.sub(b.g(), mean));
}

}  // namespace

const ir::OpDef& op_softmax() {
  static const ir::OpDef def{
      .name = "softmax",
      .summary = "e * (1/sum(e)) with e = exp(x - max(x)), along one axis.",
      .attrs = {optional("axis", int64_t{-1})},
      .infer = infer_softmax,
      .decompose = decompose_softmax,
      .gradient = gradient_of_one<gradient_softmax>,
      .onnx = {.name = "Softmax", .attrs = "axis", .since = 13},
      .draw = {.node = draw_along},
  };
  return def;
}

}  // namespace pyc::ops
