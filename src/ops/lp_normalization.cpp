#include "ops/support/backward.h"
#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_lp_normalization(const InferArgs& args) {
  const int64_t p = args.attr_int("p");
  if (p != 1 && p != 2) return refuse(Code::kInvalidArgument, "p must be 1 or 2, found ", p);
  return infer_along_axis(args, kFloats);
}

Result<std::vector<ValueId>> decompose_lp_normalization(ir::GraphBuilder& builder,
                                                        const ir::Node& node) {
  Compose c(builder, node);
  const ir::Attrs axes{{"axes", Ints{c.attrs().attr_int("axis")}}};
  const ValueId x = c.wide_input(0);
  const ValueId norm = c.op(c.attrs().attr_int("p") == 1 ? "reduce_l1" : "reduce_l2", {x}, axes);
  const ValueId zero = c.scalar_like(x, 0.0);
  const ValueId y = c.op("where", {c.op("equal", {norm, zero}), zero, c.div(x, norm)});
  return c.outputs({c.cast(y, c.input_type(0).dtype)});
}

ValueId gradient_lp_normalization(Backward& b) {
  // (g - y'·sum(g·y)) / norm with y' = y, or the sign for p = 1; 0 where the norm is.
  const bool absolute = b.attrs().attr_int("p") == 1;
  const Ints axes{b.attrs().attr_int("axis")};
  const ValueId x = b.x();
  const ValueId found = b.op(absolute ? "reduce_l1" : "reduce_l2", {x}, {{"axes", axes}});
  const ValueId none = b.is(found, 0.0);
  const ValueId norm = b.where(none, b.scalar_like(found, 1.0), found);
  const ValueId y = b.div(x, norm);
  const ValueId along = b.sum(b.mul(b.g(), y), axes, true);
  const ValueId below = b.less(x, b.scalar_like(x, 0.0));
  const ValueId part =
      absolute ? b.where(below, b.neg(along), b.except(b.is(x, 0.0), along)) : b.mul(y, along);
  return b.except(none, b.div(b.sub(b.g(), part), norm));
}

Result<ValueId> draw_lp_normalization(Draw& d, DType t) {
  return drawn_along(d, t, {{"p", d.pick(1, 2)}});
}

}  // namespace

const ir::OpDef& op_lp_normalization() {
  static const ir::OpDef def{
      .name = "lp_normalization",
      .summary =
          "x / norm along one axis, the norm sum(|x|) for p=1 or sqrt(sum(x*x)) for p=2; 0 where "
          "it is 0.",
      .attrs = {optional("axis", int64_t{-1}), optional("p", int64_t{2})},
      .infer = infer_lp_normalization,
      .decompose = decompose_lp_normalization,
      .gradient = gradient_of_one<gradient_lp_normalization>,
      .onnx = {.name = "LpNormalization", .attrs = "axis p"},
      .draw = {.node = draw_lp_normalization},
  };
  return def;
}

}  // namespace pyc::ops
