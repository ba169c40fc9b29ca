#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/reduce.h"

namespace pyc::ops {
namespace {

Result<std::vector<ValueId>> decompose_reduce_log_sum(ir::GraphBuilder& builder,
                                                      const ir::Node& node) {
  Compose c(builder, node);
  const ValueId y = c.op("log", {c.op("reduce_sum", {real_input(c)}, node.attrs)});
  return c.outputs({c.cast(y, c.input_type(0).dtype)});
}

}  // namespace

const ir::OpDef& op_reduce_log_sum() {
  static const ir::OpDef def{
      .name = "reduce_log_sum",
      .summary = "log(sum of x) over axes (none given: all); integers through f64, truncated.",
      .attrs = reduce_attrs(),
      .infer = [](const InferArgs& args) { return infer_reduce(args, kNumbers); },
      .decompose = decompose_reduce_log_sum,
      .draw = {.node = draw_reduce},
  };
  return def;
}

}  // namespace pyc::ops
