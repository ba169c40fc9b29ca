#include "ops/support/draws.h"
#include "ops/support/optimizer.h"

namespace pyc::ops {
namespace {

Result<std::vector<ValueId>> decompose_adagrad(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const OptimizerInputs in = optimizer_inputs(c);
  const double decay = c.attrs().attr_float("decay_factor");
  const ValueId slower = c.shift(c.scale(c.cast(c.input(1), c.type(in.x).dtype), decay), 1.0);
  const ValueId h = c.add(c.wide_input(4), c.mul(in.g, in.g));
  const ValueId root = c.shift(c.op("sqrt", {h}), c.attrs().attr_float("epsilon"));
  const ValueId way = c.div(c.mul(c.div(in.rate, slower), in.g), root);
  return optimizer_outputs(c, {c.sub(in.x, way), h});
}

Result<ValueId> draw_adagrad(Draw& d, DType t) {
  return drawn_optimizer(d, t, 1, {{"decay_factor", d.choose({0.0, 0.25})}});
}

}  // namespace

const ir::OpDef& op_adagrad() {
  static const ir::OpDef def{
      .name = "adagrad",
      .summary =
          "One step of Adagrad: the new x and sum of squares h. Inputs: rate, step number, x, "
          "gradient, h.",
      .min_inputs = 5,
      .max_inputs = 5,
      .outputs = 2,
      .attrs = {optional("decay_factor", 0.0), optional("epsilon", 1e-6),
                optional("norm_coefficient", 0.0)},
      .infer = infer_optimizer,
      .decompose = decompose_adagrad,
      .draw = {.node = draw_adagrad},
  };
  return def;
}

}  // namespace pyc::ops
