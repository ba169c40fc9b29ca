#include "ops/support/backward.h"
#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/reduce.h"
#include "ops/support/reduce_gradient.h"

namespace pyc::ops {
namespace {

Result<std::vector<ValueId>> decompose_reduce_l2(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const ValueId x = real_input(c);
  const ValueId y = c.op("sqrt", {c.op("reduce_sum", {c.mul(x, x)}, node.attrs)});
  return c.outputs({c.cast(y, c.input_type(0).dtype)});
}

ValueId gradient_reduce_l2(Backward& b) {
  // x / norm, 0 where the norm is.
  const ValueId none = b.is(b.y(), 0.0);
  const ValueId share = b.div(b.g(), b.where(none, b.scalar_like(b.y(), 1.0), b.y()));
  return b.mul(b.x(), spread(b, b.except(none, share)));
}

}  // namespace

const ir::OpDef& op_reduce_l2() {
  static const ir::OpDef def{
      .name = "reduce_l2",
      .summary = "sqrt(sum of x*x) over axes (none given: all); integers through f64, truncated.",
      .attrs = reduce_attrs(),
      .infer = [](const InferArgs& args) { return infer_reduce(args, kNumbers); },
      .decompose = decompose_reduce_l2,
      .gradient = gradient_of_one<gradient_reduce_l2>,
      .draw = {.node = draw_reduce},
  };
  return def;
}

}  // namespace pyc::ops
