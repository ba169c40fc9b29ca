#include "ops/support/draws.h"
#include "ops/support/recurrent.h"

namespace pyc::ops {
namespace {

const RecurrentKind kLstm{
    4, 2, "sigmoid,tanh,tanh", {"b", "sequence_lens", "initial_h", "initial_c", "p"}};

std::vector<ir::AttrDef> attrs_lstm() {
  auto attrs = recurrent_attrs();
  attrs.push_back(optional("input_forget", false));
  return attrs;
}

Result<std::vector<ValueId>> decompose_lstm(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const bool coupled = c.attrs().attr_bool("input_forget");
  const auto step = [&](const Direction& d, ValueId x, const std::vector<ValueId>& states) {
    const ValueId cell = states[1];
    const ValueId gates = c.add(x, c.op("matmul", {states[0], d.r_transposed}));
    // Gate `i`, and the peephole at the same place looking at `seen`.
    const auto gate = [&](int64_t i, ValueId seen) {
      const ValueId g = d.part(c, gates, i);
      if (d.peepholes == ir::kNoId) return d.functions[0](g);
      return d.functions[0](c.add(g, c.mul(d.part(c, d.peepholes, i), seen)));
    };
    const ValueId in = gate(0, cell);
    const ValueId forget = coupled ? c.sub(c.scalar_like(in, 1.0), in) : gate(2, cell);
    const ValueId fresh = d.functions[1](d.part(c, gates, 3));
    const ValueId next = c.add(c.mul(forget, cell), c.mul(in, fresh));
    return std::vector<ValueId>{c.mul(gate(1, next), d.functions[2](next)), next};
  };
  return unroll(c, node, kLstm, {[&](const Direction& d) { return joined_bias(c, d); }, step});
}

Result<ValueId> draw_lstm(Draw& d, DType t) {
  return drawn_recurrent(d, t, {4, 3, true}, {{"input_forget", d.chance(4)}});
}

}  // namespace

const ir::OpDef& op_lstm() {
  static const ir::OpDef def{
      .name = "lstm",
      .summary =
          "Long short-term memory, gates in the order i, o, f, c: y of all steps, and the last h "
          "and c.",
      .min_inputs = 3,
      .max_inputs = 8,
      .outputs = 3,
      .attrs = attrs_lstm(),
      .infer = [](const InferArgs& args) { return infer_recurrent(args, kLstm); },
      .decompose = decompose_lstm,
      .draw = {.node = draw_lstm},
  };
  return def;
}

}  // namespace pyc::ops
