#include "ops/draw.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Types infer_bitcast(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const DType to = args.attr_dtype("to");
  if (dtype_bits(x.dtype) != dtype_bits(to)) {
    return refuse(Code::kDtypeMismatch, "", x, " and ", to, " differ in size");
  }
  return one(to, x.shape);
}

// A bool is 0 or 1, and any other byte read as one is true.
Expr lower_bitcast(LowerContext& context, int, std::span<const Expr> index) {
  Expr x = canonical_nan(context.input(0, index));
  const DType to = context.output_type(0).dtype;
  if (x.dtype() == to) return x;
  if (x.dtype() == DType::kBool) x = convert(x, DType::kU8);
  if (to == DType::kBool) return convert(bitcast(x, DType::kU8), to);
  return bitcast(x, to);
}

Result<ValueId> draw_bitcast(Draw& d, DType t) {
  DType to = d.any_dtype();
  while (dtype_bits(to) != dtype_bits(t)) to = d.any_dtype();
  return d.op({d.tensor(t, d.shape())}, {{"to", to}});
}

}  // namespace

const ir::OpDef& op_bitcast() {
  static const ir::OpDef def{
      .name = "bitcast",
      .summary = "The same bits as another dtype of that size; a NaN is made canonical first.",
      .attrs = {required("to", ir::AttrKind::kDType)},
      .infer = infer_bitcast,
      .lower = lower_bitcast,
      .traits = {.elementwise = true},
      .no_gradient = "it reads bits, not numbers",
      .onnx = {.name = "BitCast", .attrs = "to", .since = 26, .small = true},
      .draw = {.node = draw_bitcast, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
