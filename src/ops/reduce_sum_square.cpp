#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/reduce.h"

namespace pyc::ops {
namespace {

Result<std::vector<ValueId>> decompose_reduce_sum_square(ir::GraphBuilder& builder,
                                                         const ir::Node& node) {
  Compose c(builder, node);
  const ValueId x = c.wide_input(0);
  const ValueId y = c.op("reduce_sum", {c.mul(x, x)}, node.attrs);
  return c.outputs({c.cast(y, c.input_type(0).dtype)});
}

}  // namespace

const ir::OpDef& op_reduce_sum_square() {
  static const ir::OpDef def{
      .name = "reduce_sum_square",
      .summary = "The sum of x*x over axes (none given: all).",
      .attrs = reduce_attrs(),
      .infer = [](const InferArgs& args) { return infer_reduce(args, kNumbers); },
      .decompose = decompose_reduce_sum_square,
      .draw = {.node = draw_reduce},
  };
  return def;
}

}  // namespace pyc::ops
