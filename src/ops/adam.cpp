#include "ops/support/draws.h"
#include "ops/support/optimizer.h"

namespace pyc::ops {
namespace {

// 1 - base^t in f64.
ValueId corrected(Compose& c, double base, ValueId t) {
  const ValueId log = c.op("log", {c.constant(DType::kF64, {}, {base})});
  const ValueId power = c.op("exp", {c.mul(t, log)});
  return c.sub(c.scalar_like(power, 1.0), power);
}

// The rate with both averages' bias taken out, from the first step on.
ValueId adjusted_rate(Compose& c, const OptimizerInputs& in, ValueId t, double alpha, double beta) {
  const ValueId rate = c.cast(c.input(0), DType::kF64);
  const ValueId rescaled =
      c.div(c.mul(rate, c.op("sqrt", {corrected(c, beta, t)})), corrected(c, alpha, t));
  return c.cast(c.op("where", {in.later, rescaled, rate}), c.type(in.x).dtype);
}

// With t the number of the step, wherever that counts.
Result<std::vector<ValueId>> step_of_adam(Compose& c, ValueId t) {
  const OptimizerInputs in = optimizer_inputs(c);
  const double alpha = c.attrs().attr_float("alpha");
  const double beta = c.attrs().attr_float("beta");
  const ValueId v = c.add(c.scale(c.wide_input(4), alpha), c.scale(in.g, 1.0 - alpha));
  const ValueId h = c.add(c.scale(c.wide_input(5), beta), c.scale(c.mul(in.g, in.g), 1.0 - beta));
  const ValueId root = c.shift(c.op("sqrt", {h}), c.attrs().attr_float("epsilon"));
  const ValueId x = c.sub(in.x, c.mul(adjusted_rate(c, in, t, alpha, beta), c.div(v, root)));
  return optimizer_outputs(c,
                           {c.scale(x, 1.0 - c.attrs().attr_float("norm_coefficient_post")), v, h});
}

Result<std::vector<ValueId>> decompose_adam(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  return step_of_adam(c, c.cast(c.input(1), DType::kF64));
}

// Step 0, whose bias is not taken out, has no finite one either: as step 1, for nothing.
Result<std::vector<ValueId>> gradient_form_adam(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const ValueId t = c.cast(c.input(1), DType::kF64);
  return step_of_adam(c, c.op("max", {t, c.scalar_like(t, 1.0)}));
}

Result<ValueId> draw_adam(Draw& d, DType t) {
  return drawn_optimizer(d, t, 2, {{"norm_coefficient_post", d.choose({0.0, 0.25})}});
}

}  // namespace

const ir::OpDef& op_adam() {
  static const ir::OpDef def{
      .name = "adam",
      .summary =
          "One step of Adam: the new x, v and h. Inputs: rate, step number, x, gradient, v, h.",
      .min_inputs = 6,
      .max_inputs = 6,
      .outputs = 3,
      .attrs = {optional("alpha", 0.9), optional("beta", 0.999), optional("epsilon", 1e-6),
                optional("norm_coefficient", 0.0), optional("norm_coefficient_post", 0.0)},
      .infer = infer_optimizer,
      .decompose = decompose_adam,
      .gradient_form = gradient_form_adam,
      .draw = {.node = draw_adam},
  };
  return def;
}

}  // namespace pyc::ops
