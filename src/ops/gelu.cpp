#include <numbers>

#include "ops/draw.h"
#include "ops/support/backward.h"
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

// x·((phi + 1)/2) has the bits of (x/2)·(phi + 1): halves are exact but for the smallest x, where
// phi adds nothing to 1; and it is an operation less.
Expr lower_gelu(LowerContext& context, int, std::span<const Expr> index) {
  const Expr x = context.input_compute(0, index);
  const Expr phi = context.attr_string("approximate") == "tanh"
                       ? tanh_approximation(x)
                       : loop::erf(x * (1.0 / std::numbers::sqrt2));
  const Expr half = loop::like(phi, 0.5);
  return rounded(context, x * loop::fma(phi, half, half));
}

ValueId gradient_gelu(Backward& b) {
  const ValueId x = b.x();
  const ValueId square = b.mul(x, x);
  if (b.attrs().attr_string("approximate") == "tanh") {
    const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    const ValueId cube = b.scale(b.mul(square, x), 0.044715);
    const ValueId t = b.fn("tanh", b.scale(b.add(x, cube), scale));
    const ValueId inner = b.scale(b.shift(b.scale(square, 3.0 * 0.044715), 1.0), scale);
    const ValueId bend = b.mul(b.mul(x, b.shift(b.neg(b.mul(t, t)), 1.0)), inner);
    return b.mul(b.g(), b.scale(b.add(b.shift(t, 1.0), bend), 0.5));
  }
  const ValueId phi =
      b.scale(b.shift(b.fn("erf", b.scale(x, 1.0 / std::numbers::sqrt2)), 1.0), 0.5);
  const double height = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const ValueId bell = b.scale(b.fn("exp", b.scale(square, -0.5)), height);
  return b.mul(b.g(), b.add(phi, b.mul(x, bell)));
}

Result<ValueId> draw_gelu(Draw& d, DType t) {
  return d.op({d.tensor(t, d.shape())}, {{"approximate", d.word({"none", "tanh"})}});
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
      .gradient = gradient_of_one<gradient_gelu>,
      .onnx = {.name = "Gelu", .attrs = "approximate"},
      .draw = {.node = draw_gelu},
  };
  return def;
}

}  // namespace pyc::ops
