#include "ops/support/backward.h"
#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_log_softmax(const InferArgs& args) { return infer_along_axis(args, kFloats); }

Result<std::vector<ValueId>> decompose_log_softmax(ir::GraphBuilder& builder,
                                                   const ir::Node& node) {
  Compose c(builder, node);
  const ir::Attrs axes{{"axes", Ints{c.attrs().attr_int("axis")}}};
  const ValueId x = c.wide_input(0);
  const ValueId shifted = c.sub(x, c.op("reduce_max", {x}, axes));
  const ValueId sum = c.op("reduce_sum", {c.op("exp", {shifted})}, axes);
  const ValueId y = c.sub(shifted, c.op("log", {sum}));
  return c.outputs({c.cast(y, c.input_type(0).dtype)});
}

ValueId gradient_log_softmax(Backward& b) {
  const ValueId total = b.sum(b.g(), {b.attrs().attr_int("axis")}, true);
  return b.sub(b.g(), b.mul(b.fn("exp", b.y()), total));
}

}  // namespace

const ir::OpDef& op_log_softmax() {
  static const ir::OpDef def{
      .name = "log_softmax",
      .summary = "(x-m) - log(sum(exp(x-m))) with m = max(x), along one axis.",
      .attrs = {optional("axis", int64_t{-1})},
      .infer = infer_log_softmax,
      .decompose = decompose_log_softmax,
      .gradient = gradient_of_one<gradient_log_softmax>,
      .onnx = {.name = "LogSoftmax", .attrs = "axis", .since = 13},
      .draw = {.node = draw_along},
  };
  return def;
}

}  // namespace pyc::ops
