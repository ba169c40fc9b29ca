#include <algorithm>

#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Types infer_lrn(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("input", x, kFloats));
  if (x.rank() < 2) {
    return refuse(Code::kRankMismatch, "input must have rank 2 or more, found ", x);
  }
  if (args.attr_int("size") < 1) {
    return refuse(Code::kInvalidArgument, "size must be positive, found ", args.attr_int("size"));
  }
  return one(x.dtype, x.shape);
}

Expr lower_lrn(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& x = context.input_type(0);
  const int64_t size = context.attr_int("size");
  // Channels that exist: a larger size only adds taps outside.
  const int64_t others = std::max<int64_t>(x.shape[1] - 1, 0);
  const int64_t before = std::min((size - 1) / 2, others);
  const int64_t behind = std::min(size / 2, others);
  const auto term = [&](std::span<const Expr> k) {
    Index at = to_index(index);
    at[1] = index[1] + k[0] - context.index(before);
    const Expr inside = between(context, at[1], 0, x.shape[1]);
    const Expr v =
        convert(context.input_if(0, at, inside, zero(context, x.dtype)), compute_dtype(x.dtype));
    return ReduceTerm{.value = v * v, .guard = always(inside) ? Expr{} : inside};
  };
  const Expr sum = context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum,
                                  Ints{before + behind + 1}, term);
  const double scale = context.attr_float("alpha") / static_cast<double>(size);
  const Expr base = sum * scale + context.attr_float("bias");
  const Expr power = loop::pow(base, like(base, context.attr_float("beta")));
  return rounded(context, context.input_compute(0, index) / power);
}

// For each channel the sum over it, `before` and `behind` others.
ValueId channel_sums(Backward& b, ValueId v, int64_t before, int64_t behind) {
  if (b.type(v).shape[1] == 0) return v;
  Ints pads(2 * b.type(v).shape.size(), 0);
  pads[1] = before;
  pads[1 + b.type(v).shape.size()] = behind;
  const ValueId framed =
      b.op("frames", {b.op("pad", {v}, {{"pads", pads}})},
           {{"axis", int64_t{1}}, {"length", before + behind + 1}, {"step", int64_t{1}}});
  return b.sum(framed, {2}, false);
}

ValueId gradient_lrn(Backward& b) {
  const int64_t size = b.attrs().attr_int("size");
  const double scale = b.attrs().attr_float("alpha") / static_cast<double>(size);
  const double beta = b.attrs().attr_float("beta");
  const int64_t others = std::max<int64_t>(b.input_type(0).shape[1] - 1, 0);
  const int64_t before = std::min((size - 1) / 2, others);
  const int64_t behind = std::min(size / 2, others);
  const ValueId squares = channel_sums(b, b.mul(b.x(), b.x()), before, behind);
  const ValueId base = b.shift(b.scale(squares, scale), b.attrs().attr_float("bias"));
  const auto power = [&](double p) { return b.op("pow", {base, b.scalar_like(base, p)}); };
  const ValueId bend = b.mul(b.mul(b.g(), b.x()), power(-beta - 1.0));
  // A channel is among the squares of those around it the other way round.
  const ValueId back =
      b.mul(b.x(), b.scale(channel_sums(b, bend, behind, before), 2.0 * scale * beta));
  return b.sub(b.mul(b.g(), power(-beta)), back);
}

Result<ValueId> draw_lrn(Draw& d, DType t) {
  return d.op({d.tensor(t, d.shape(2, 4))},
              {{"size", d.choose<int64_t>({1, 3, 5})}, {"alpha", 0.1}, {"bias", 1.5}});
}

}  // namespace

const ir::OpDef& op_lrn() {
  static const ir::OpDef def{
      .name = "lrn",
      .summary =
          "x / (bias + alpha/size · s)^beta, s the sum of the squares of the `size` channels "
          "(axis 1) around the element's own, added in order.",
      .attrs = {required("size", ir::AttrKind::kInt), optional("alpha", 1e-4),
                optional("beta", 0.75), optional("bias", 1.0)},
      .infer = infer_lrn,
      .lower = lower_lrn,
      .gradient = gradient_of_one<gradient_lrn>,
      .onnx = {.name = "LRN", .attrs = "size alpha beta bias"},
      .draw = {.node = draw_lrn},
  };
  return def;
}

}  // namespace pyc::ops
