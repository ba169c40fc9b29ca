#include <numbers>

#include "loop/functions.h"
#include "ops/draw.h"
#include "ops/support/random.h"

namespace pyc::ops {
namespace {

Types infer_random_normal(const InferArgs& args) { return infer_random(args); }

Expr lower_random_normal(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& y = context.output_type(0);
  const Expr first = drawn_position(context, index, 0) * context.index(2);
  // In (0, 1], so that its logarithm is finite.
  const Expr u = random_unit(context, first) + 0x1p-32;
  const Expr turn = random_unit(context, first + context.index(1));
  const Expr radius = sqrt(loop::log(u) * -2.0);
  const Expr z = radius * loop::cos(turn * (2.0 * std::numbers::pi));
  return convert(z * context.attr_float("scale") + context.attr_float("mean"), y.dtype);
}

Result<ValueId> draw_random_normal(Draw& d, DType t) {
  return d.op({}, {{"shape", d.shape()}, {"dtype", t}, {"seed", d.pick(0, 99)}, {"scale", 2.0}});
}

}  // namespace

const ir::OpDef& op_random_normal() {
  static const ir::OpDef def{
      .name = "random_normal",
      .summary =
          "mean + scale*z in f64, rounded once; z by Box and Muller from words 2i and 2i+1 of "
          "element i.",
      .min_inputs = 0,
      .max_inputs = 1,
      .attrs = random_attrs({required("shape", ir::AttrKind::kInts), optional("dtype", DType::kF32),
                             optional("mean", 0.0), optional("scale", 1.0)}),
      .infer = infer_random_normal,
      .lower = lower_random_normal,
      .traits = {.random = true},
      .no_gradient = "it draws",
      .draw = {.node = draw_random_normal},
  };
  return def;
}

}  // namespace pyc::ops
