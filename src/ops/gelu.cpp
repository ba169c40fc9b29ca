#include <numbers>

#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Types infer_gelu(const InferArgs& args) {
  const std::string& approximate = args.attr_string("approximate");
  if (approximate != "none" && approximate != "tanh") {
    return refuse(Code::kInvalidArgument, "approximate must be \"none\" or \"tanh\", found \"",
                  approximate, "\"");
  }
  return infer_elementwise(args, kFloats);
}

// tanh(√(2/π)·(x + 0.044715·x³)), close to erf(x/√2).
Expr tanh_approximation(Expr x) {
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return loop::tanh((x + x * x * x * 0.044715) * scale);
}

Expr lower_gelu(LowerContext& context, int, std::span<const Expr> index) {
  const Expr x = context.input_compute(0, index);
  const Expr phi = context.attr_string("approximate") == "tanh"
                       ? tanh_approximation(x)
                       : loop::erf(x * (1.0 / std::numbers::sqrt2));
  return rounded(context, x * 0.5 * (phi + 1.0));
}

}  // namespace

const ir::OpDef& op_gelu() {
  static const ir::OpDef def{
      .name = "gelu",
      .summary = "(x*0.5) * (1 + erf(x*sqrt(1/2))), or with the tanh approximation of erf.",
      .attrs = {optional("approximate", std::string("none"))},
      .infer = infer_gelu,
      .lower = lower_gelu,
      .traits = {.elementwise = true},
  };
  return def;
}

}  // namespace pyc::ops
