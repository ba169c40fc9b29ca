#include "ops/support/draws.h"
#include "ops/support/optimizer.h"

namespace pyc::ops {
namespace {

Types infer_momentum(const InferArgs& args) {
  const std::string& mode = args.attr_string("mode");
  if (mode != "standard" && mode != "nesterov") {
    return refuse(Code::kInvalidArgument, "mode must be \"standard\" or \"nesterov\", found \"",
                  mode, "\"");
  }
  return infer_optimizer(args);
}

Result<std::vector<ValueId>> decompose_momentum(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const OptimizerInputs in = optimizer_inputs(c);
  const double alpha = c.attrs().attr_float("alpha");
  // The gradient counts fully in the first step.
  const ValueId share = c.op("where", {in.later, c.scalar_like(in.g, c.attrs().attr_float("beta")),
                                       c.scalar_like(in.g, 1.0)});
  const ValueId v = c.add(c.scale(c.wide_input(4), alpha), c.mul(share, in.g));
  const bool nesterov = c.attrs().attr_string("mode") == "nesterov";
  const ValueId way = nesterov ? c.add(in.g, c.scale(v, alpha)) : v;
  return optimizer_outputs(c, {c.sub(in.x, c.mul(in.rate, way)), v});
}

Result<ValueId> draw_momentum(Draw& d, DType t) {
  return drawn_optimizer(
      d, t, 1, {{"alpha", 0.75}, {"beta", 0.5}, {"mode", d.word({"standard", "nesterov"})}});
}

}  // namespace

const ir::OpDef& op_momentum() {
  static const ir::OpDef def{
      .name = "momentum",
      .summary =
          "One step of gradient descent with momentum: the new x and v. Inputs: rate, step number, "
          "x, gradient, v.",
      .min_inputs = 5,
      .max_inputs = 5,
      .outputs = 2,
      .attrs = {required("alpha", ir::AttrKind::kFloat), required("beta", ir::AttrKind::kFloat),
                optional("mode", std::string("standard")), optional("norm_coefficient", 0.0)},
      .infer = infer_momentum,
      .decompose = decompose_momentum,
      .draw = {.node = draw_momentum},
  };
  return def;
}

}  // namespace pyc::ops
