#include "ops/draw.h"
#include "ops/support/compose.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_dynamic_quantize(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  if (x.dtype != DType::kF32) {
    return refuse(Code::kDtypeMismatch, "x must have dtype f32, found ", x);
  }
  return std::vector<TensorType>{{DType::kU8, x.shape}, {DType::kF32, {}}, {DType::kU8, {}}};
}

Result<std::vector<ValueId>> decompose_dynamic_quantize(ir::GraphBuilder& builder,
                                                        const ir::Node& node) {
  Compose c(builder, node);
  constexpr double kSteps = 255.0;
  const ValueId x = c.input(0);
  const ValueId zero = c.scalar_like(x, 0.0);
  const ir::Attrs all{{"keepdims", false}};
  const ValueId hi = c.op("max", {c.op("reduce_max", {x}, all), zero});
  const ValueId lo = c.op("min", {c.op("reduce_min", {x}, all), zero});
  const ValueId range =
      c.op("where", {c.op("equal", {hi, lo}), c.scalar_like(x, 1.0), c.sub(hi, lo)});
  const ValueId scale = c.div(range, c.scalar_like(x, kSteps));
  const ir::Attrs to{{"to", DType::kU8}};
  const ValueId zero_point = c.op("quantize", {c.op("neg", {lo}), scale}, to);
  return c.outputs({c.op("quantize", {x, scale, zero_point}, to), scale, zero_point});
}

Result<ValueId> draw_dynamic_quantize(Draw& d, DType t) {
  return d.op({d.tensor(t, d.shape(0, 4, 1))});
}

}  // namespace

const ir::OpDef& op_dynamic_quantize() {
  static const ir::OpDef def{
      .name = "dynamic_quantize",
      .summary = "x as u8, with the scale and zero point that cover 0 and all of x.",
      .outputs = 3,
      .infer = infer_dynamic_quantize,
      .decompose = decompose_dynamic_quantize,
      .onnx = {.name = "DynamicQuantizeLinear"},
      .draw = {.node = draw_dynamic_quantize, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
