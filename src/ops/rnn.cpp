#include "ops/support/draws.h"
#include "ops/support/recurrent.h"

namespace pyc::ops {
namespace {

const RecurrentKind kRnn{1, 1, "tanh", {"b", "sequence_lens", "initial_h"}};

Result<std::vector<ValueId>> decompose_rnn(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const auto step = [&](const Direction& d, ValueId x, const std::vector<ValueId>& states) {
    const ValueId sum = c.add(x, c.op("matmul", {states[0], d.r_transposed}));
    return std::vector<ValueId>{d.functions[0](sum)};
  };
  return unroll(c, node, kRnn, {[&](const Direction& d) { return joined_bias(c, d); }, step});
}

Result<ValueId> draw_rnn(Draw& d, DType t) { return drawn_recurrent(d, t, {1, 1}, {}); }

}  // namespace

const ir::OpDef& op_rnn() {
  static const ir::OpDef def{
      .name = "rnn",
      .summary = "h = f((x·Wᵀ + (Wb+Rb)) + h·Rᵀ) step by step: y of all steps, and the last h.",
      .min_inputs = 3,
      .max_inputs = 6,
      .outputs = 2,
      .attrs = recurrent_attrs(),
      .infer = [](const InferArgs& args) { return infer_recurrent(args, kRnn); },
      .decompose = decompose_rnn,
      .draw = {.node = draw_rnn},
  };
  return def;
}

}  // namespace pyc::ops
