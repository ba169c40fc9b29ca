#include <cmath>
#include <optional>

#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

// 1/x for a power of two, if the dtype has it: then x / 2^k and x * 2^-k round the same number.
std::optional<double> exact_reciprocal(Word element, DType t) {
  const double x = word_to_double(element, t);
  int exponent = 0;
  if (!std::isfinite(x) || std::fabs(std::frexp(x, &exponent)) != 0.5) return {};
  const double reciprocal = 1.0 / x;
  const Word rounded = word_from_double(reciprocal, t);
  if (!std::isfinite(reciprocal) || word_to_double(rounded, t) != reciprocal) return {};
  return reciprocal;
}

ValueId simplify_div(Patch& patch, const NodeView& node) {
  const std::optional<Word> divisor = patch.uniform(node.input(1));
  if (!divisor) return kNoId;
  if (patch.is_uniform(node.input(1), 1.0)) {
    return patch.by("div_one", input_if_same(node, 0));
  }
  const ir::TensorType scalar{node.type().dtype, {}};
  if (!is_float(scalar.dtype) || node.input_type(0) != node.type()) return kNoId;
  const std::optional<double> factor = exact_reciprocal(*divisor, scalar.dtype);
  if (!factor) return kNoId;
  const ValueId constant = patch.constant(scalar, ir::splat_data(scalar, *factor));
  return patch.by("div_power_of_two", patch.op("mul", {node.input(0), constant}));
}

Grads gradient_div(ir::GraphBuilder& builder, const ir::Node& node,
                   std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const ValueId share = b.div(b.g(), b.x(1));
  return b.outputs({b.to_input(share, 0), b.to_input(b.neg(b.mul(share, b.y())), 1)});
}

}  // namespace

const ir::OpDef& op_div() {
  static const ir::OpDef def{
      .name = "div",
      .summary = "a / b, broadcast; integers truncate, x / 0 = 0.",
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kNumbers); },
      .lower = lower_binary<[](Expr a, Expr b) { return a / b; }>,
      .traits = {.elementwise = true},
      .simplify = simplify_div,
      .gradient = gradient_div,
      .onnx = {.name = "Div", .since = 7},
      .draw = {.node = draw_divided},
  };
  return def;
}

}  // namespace pyc::ops
