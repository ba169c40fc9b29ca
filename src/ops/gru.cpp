#include "ops/support/draws.h"
#include "ops/support/recurrent.h"

namespace pyc::ops {
namespace {

const RecurrentKind kGru{3, 1, "sigmoid,tanh", {"b", "sequence_lens", "initial_h"}};

std::vector<ir::AttrDef> attrs_gru() {
  auto attrs = recurrent_attrs();
  attrs.push_back(optional("linear_before_reset", false));
  return attrs;
}

// Wb + Rb; for the gate h only Wb when its Rb is reset with the product.
ValueId bias_of(Compose& c, const Direction& d, bool linear) {
  if (!linear || d.w_bias == ir::kNoId) return joined_bias(c, d);
  const ValueId sum = c.slice(joined_bias(c, d), 0, 0, 2 * d.hidden);
  return c.concat({sum, d.part(c, d.w_bias, 2)}, 0);
}

// h·Rᵀ of the first two gates, or of the third.
ValueId state_product(Compose& c, const Direction& d, ValueId h, int64_t begin, int64_t end) {
  const ValueId r = c.slice(d.r_transposed, 1, begin * d.hidden, end * d.hidden);
  return c.op("matmul", {h, r});
}

Result<std::vector<ValueId>> decompose_gru(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const bool linear = c.attrs().attr_bool("linear_before_reset");
  const auto step = [&](const Direction& d, ValueId x, const std::vector<ValueId>& states) {
    const ValueId h = states[0];
    const ValueId gates =
        d.functions[0](c.add(c.slice(x, 1, 0, 2 * d.hidden), state_product(c, d, h, 0, 2)));
    const ValueId z = d.part(c, gates, 0);
    const ValueId r = d.part(c, gates, 1);
    ValueId reset = ir::kNoId;
    if (linear) {
      reset = state_product(c, d, h, 2, 3);
      if (d.r_bias != ir::kNoId) reset = c.add(reset, d.part(c, d.r_bias, 2));
      reset = c.mul(r, reset);
    } else {
      reset = state_product(c, d, c.mul(r, h), 2, 3);
    }
    const ValueId fresh = d.functions[1](c.add(d.part(c, x, 2), reset));
    const ValueId rest = c.sub(c.scalar_like(z, 1.0), z);
    return std::vector<ValueId>{c.add(c.mul(rest, fresh), c.mul(z, h))};
  };
  return unroll(c, node, kGru, {[&](const Direction& d) { return bias_of(c, d, linear); }, step});
}

Result<ValueId> draw_gru(Draw& d, DType t) {
  return drawn_recurrent(d, t, {3, 2}, {{"linear_before_reset", d.flip()}});
}

}  // namespace

const ir::OpDef& op_gru() {
  static const ir::OpDef def{
      .name = "gru",
      .summary =
          "Gated recurrent unit, gates in the order z, r, h: y of all steps, and the last h.",
      .min_inputs = 3,
      .max_inputs = 6,
      .outputs = 2,
      .attrs = attrs_gru(),
      .infer = [](const InferArgs& args) { return infer_recurrent(args, kGru); },
      .decompose = decompose_gru,
      .draw = {.node = draw_gru},
  };
  return def;
}

}  // namespace pyc::ops
