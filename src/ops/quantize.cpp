#include "ops/support/draws.h"
#include "ops/support/narrow.h"
#include "ops/support/quant.h"

namespace pyc::ops {
namespace {

constexpr DTypeClass kQuantizeSources{[](DType t) { return is_float(t) || t == DType::kI32; },
                                      "a float dtype or i32"};

Types infer_quantize(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const DType to = args.attr_dtype("to");
  PYC_TRY(require_dtype("x", x, kQuantizeSources));
  PYC_TRY(require_dtype("the result", {to, {}}, kQuantized));
  PYC_TRY(require_scales(args));
  if (args.inputs.size() > 2 && args.inputs[2].dtype != to) {
    return refuse(Code::kDtypeMismatch, "zero_point must have dtype ", to, ", found ",
                  args.inputs[2]);
  }
  return one(to, x.shape);
}

std::vector<ir::AttrDef> quantize_attrs() {
  auto attrs = quant_attrs();
  attrs.push_back(optional("saturate", true));
  return attrs;
}

// x within what fits `t`, moved by -zero.
Expr saturated(LowerContext& context, Expr x, DType t, Expr zero) {
  const Expr lo = convert(lowest(context, t), x.dtype());
  const Expr hi = convert(highest(context, t), x.dtype());
  return min(max(x, lo - zero), hi - zero);
}

Expr lower_quantize(LowerContext& context, int, std::span<const Expr> index) {
  const DType to = context.output_type(0).dtype;
  const DType wide = quant_dtype(context);
  const Index at = scale_index(context, index);
  const Expr ratio = convert(context.input(0, index), wide) / convert(context.input(1, at), wide);
  if (is_float(to)) {
    return convert(context.attr_bool("saturate") ? within_fp8(ratio, to) : ratio, to);
  }
  const Expr zero_point = context.inputs() > 2 ? convert(context.input(2, at), DType::kI32)
                                               : zero(context, DType::kI32);
  const Expr steps = saturated(context, round_even(ratio), to, convert(zero_point, wide));
  return convert(convert(steps, DType::kI32) + zero_point, to);
}

DType quantized_dtype(Draw& d) {
  if (d.tame()) return d.choose({DType::kI8, DType::kU8, DType::kI16, DType::kU16});
  return d.choose({DType::kI8, DType::kU8, DType::kI4, DType::kU4, DType::kI16, DType::kU16,
                   DType::kF8E4M3FN, DType::kF8E5M2, DType::kI2, DType::kF4E2M1});
}

Result<ValueId> draw_quantize(Draw& d, DType t) {
  const DrawnScales s = drawn_scales(d);
  const DType to = quantized_dtype(d);
  const DType scale = is_float(t) ? t : DType::kF32;
  std::vector<ValueId> inputs{d.tensor(t, s.shape), d.tensor_in(scale, s.scale, 0.1, 1.0)};
  if (d.flip()) inputs.push_back(d.tensor_in(to, s.scale, 0.0, is_float(to) ? 0.0 : 2.0));
  Attrs attrs{{"to", to}, {"axis", s.axis}, {"block_size", s.block}};
  if (is_float(to)) attrs["saturate"] = d.flip();
  return d.op(std::move(inputs), std::move(attrs));
}

}  // namespace

const ir::OpDef& op_quantize() {
  static const ir::OpDef def{
      .name = "quantize",
      .summary =
          "saturate(round_even(x/scale) + zero_point) as an integer, or x/scale as a narrow float; "
          "NaN becomes the zero point.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = quantize_attrs(),
      .infer = infer_quantize,
      .lower = lower_quantize,
      .no_gradient = "it rounds to a grid: its derivative is 0 or does not exist",
      .draw = {.node = draw_quantize, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
