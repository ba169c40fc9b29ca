#include <limits>

#include "ops/support/backward.h"
#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/reduce.h"
#include "ops/support/reduce_gradient.h"

namespace pyc::ops {
namespace {

Result<std::vector<ValueId>> decompose_reduce_log_sum_exp(ir::GraphBuilder& builder,
                                                          const ir::Node& node) {
  Compose c(builder, node);
  ir::Attrs kept = node.attrs;
  kept["keepdims"] = true;
  const ValueId x = real_input(c);
  const ValueId largest = c.op("reduce_max", {x}, kept);
  const ValueId inf = c.scalar_like(x, std::numeric_limits<double>::infinity());
  const ValueId infinite = c.op("equal", {c.op("abs", {largest}), inf});
  const ValueId m = c.op("where", {infinite, c.scalar_like(x, 0.0), largest});
  const ValueId e = c.op("exp", {c.sub(x, m)});
  const ValueId y = c.add(c.op("log", {c.op("reduce_sum", {e}, kept)}), m);
  const TensorType type = c.input_type(0);
  PYC_ASSIGN(const auto types, infer_reduce({{&type, 1}, node.attrs}, kNumbers));
  return c.outputs({c.cast(c.reshape(y, types[0].shape), type.dtype)});
}

ValueId gradient_reduce_log_sum_exp(Backward& b) {
  // The softmax; 0 where all is -inf.
  const ValueId y = spread(b, b.y());
  const ValueId none = b.is(y, -std::numeric_limits<double>::infinity());
  const ValueId e = b.fn("exp", b.sub(b.x(), b.except(none, y)));
  return b.mul(spread(b, b.g()), b.except(none, e));
}

}  // namespace

const ir::OpDef& op_reduce_log_sum_exp() {
  static const ir::OpDef def{
      .name = "reduce_log_sum_exp",
      .summary =
          "m + log(sum of exp(x-m)) over axes (none given: all), m the largest, 0 if it is "
          "infinite.",
      .attrs = reduce_attrs(),
      .infer = [](const InferArgs& args) { return infer_reduce(args, kNumbers); },
      .decompose = decompose_reduce_log_sum_exp,
      .gradient = gradient_of_one<gradient_reduce_log_sum_exp>,
      .draw = {.node = draw_reduce},
  };
  return def;
}

}  // namespace pyc::ops
