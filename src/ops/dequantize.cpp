#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/quant.h"

namespace pyc::ops {
namespace {

constexpr DTypeClass kSources{
    [](DType t) { return kQuantized.has(t) || t == DType::kI32; },
    "an integer dtype of at most 32 signed or 16 unsigned bits or a float dtype of 4 or 8"};

Types infer_dequantize(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kSources));
  PYC_TRY(require_dtype("the result", {args.attr_dtype("to"), {}}, kFloats));
  PYC_TRY(require_scales(args));
  if (args.inputs.size() > 2 && args.inputs[2].dtype != x.dtype) {
    return refuse(Code::kDtypeMismatch, "zero_point must have the dtype of x ", x, ", found ",
                  args.inputs[2]);
  }
  return one(args.attr_dtype("to"), x.shape);
}

Expr lower_dequantize(LowerContext& context, int, std::span<const Expr> index) {
  const Index at = scale_index(context, index);
  Expr x = context.input(0, index);
  if (!is_float(x.dtype())) {
    x = convert(x, DType::kI32);
    if (context.inputs() > 2) x = x - convert(context.input(2, at), DType::kI32);
  }
  const DType wide = quant_dtype(context);
  return convert(convert(x, wide) * convert(context.input(1, at), wide),
                 context.output_type(0).dtype);
}

Result<std::vector<ValueId>> gradient_form_dequantize(ir::GraphBuilder& builder,
                                                      const ir::Node& node) {
  Compose c(builder, node);
  // (x - zero_point)·scale with both as x has its dims.
  const TensorType x = c.input_type(0);
  const bool wide = x.dtype == DType::kF64 || c.input_type(1).dtype == DType::kF64;
  const DType t = wide ? DType::kF64 : DType::kF32;
  const auto placed = [&](size_t i) {
    const ValueId v = c.cast(c.input(i), t);
    const TensorType type = c.input_type(i);
    if (type.elements() == 1) return c.reshape(v, {});
    const int64_t axis = from_front(c.attrs().attr_int("axis"), x.rank());
    const int64_t block = c.attrs().attr_int("block_size");
    if (block == 0) {
      Shape shape(x.shape.size(), 1);
      shape[static_cast<size_t>(axis)] = type.shape[0];
      return c.reshape(v, shape);
    }
    Ints times(x.shape.size(), 1);
    times[static_cast<size_t>(axis)] = block;
    return c.slice(c.op("repeat", {v}, {{"times", times}}), axis, 0,
                   x.shape[static_cast<size_t>(axis)]);
  };
  ValueId y = c.cast(c.input(0), t);
  if (!is_float(x.dtype) && c.inputs() > 2) y = c.sub(y, placed(2));
  return c.outputs({c.cast(c.expand(c.mul(y, placed(1)), x.shape), c.attrs().attr_dtype("to"))});
}

Result<ValueId> draw_dequantize(Draw& d, DType t) {
  const DrawnScales s = drawn_scales(d);
  const DType to = d.float_dtype();
  std::vector<ValueId> inputs{d.tensor(t, s.shape), d.tensor_in(to, s.scale, 0.1, 1.0)};
  if (d.flip()) inputs.push_back(d.tensor_in(t, s.scale, 0.0, is_float(t) ? 0.0 : 2.0));
  return d.op(std::move(inputs), {{"to", to}, {"axis", s.axis}, {"block_size", s.block}});
}

}  // namespace

const ir::OpDef& op_dequantize() {
  static const ir::OpDef def{
      .name = "dequantize",
      .summary = "(x - zero_point) * scale; floats have no zero point.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = quant_attrs(),
      .infer = infer_dequantize,
      .lower = lower_dequantize,
      .gradient_form = gradient_form_dequantize,
      .draw = {.node = draw_dequantize},
  };
  return def;
}

}  // namespace pyc::ops
