#include "ops/draw.h"
#include "ops/support/random.h"

namespace pyc::ops {
namespace {

Types infer_random_uniform(const InferArgs& args) { return infer_random(args); }

Expr lower_random_uniform(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& y = context.output_type(0);
  const double lo = context.attr_float("lo");
  const Expr u = random_unit(context, drawn_position(context, index, 0));
  return convert(like(u, lo) + u * (context.attr_float("hi") - lo), y.dtype);
}

Result<ValueId> draw_random_uniform(Draw& d, DType t) {
  return d.op({}, {{"shape", d.shape()}, {"dtype", t}, {"seed", d.pick(0, 99)}, {"hi", 2.0}});
}

}  // namespace

const ir::OpDef& op_random_uniform() {
  static const ir::OpDef def{
      .name = "random_uniform",
      .summary =
          "lo + (hi-lo)*u in f64, rounded once; u from Philox by seed, stream and element index.",
      .min_inputs = 0,
      .max_inputs = 1,
      .attrs = random_attrs({required("shape", ir::AttrKind::kInts), optional("dtype", DType::kF32),
                             optional("lo", 0.0), optional("hi", 1.0)}),
      .infer = infer_random_uniform,
      .lower = lower_random_uniform,
      .traits = {.random = true},
      .no_gradient = "it draws",
      .draw = {.node = draw_random_uniform},
  };
  return def;
}

}  // namespace pyc::ops
