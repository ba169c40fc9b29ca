#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_hardmax(const InferArgs& args) { return infer_along_axis(args, kFloats); }

Result<std::vector<ValueId>> decompose_hardmax(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const TensorType type = c.input_type(0);
  const int64_t axis = from_front(c.attrs().attr_int("axis"), type.rank());
  const int64_t count = type.shape[static_cast<size_t>(axis)];
  const ir::Attrs axes{{"axes", Ints{axis}}};
  const ValueId x = c.input(0);
  const ValueId largest = c.op("reduce_max", {x}, axes);
  const ValueId no = c.constant(DType::kBool, {}, {0.0});
  const ValueId yes = c.constant(DType::kBool, {}, {1.0});
  const ValueId is_nan = c.op("where", {c.op("equal", {x, x}), no, yes});
  const ValueId has_nan = c.op("where", {c.op("equal", {largest, largest}), no, yes});
  const ValueId hit = c.op("where", {has_nan, is_nan, c.op("equal", {x, largest})});
  const ValueId at = c.positions(type.rank(), axis, count);
  const ValueId place = c.op("where", {hit, at, c.scalar_like(at, static_cast<double>(count))});
  const ValueId first = c.op("equal", {at, c.op("reduce_min", {place}, axes)});
  return c.outputs({c.cast(first, type.dtype)});
}

}  // namespace

const ir::OpDef& op_hardmax() {
  static const ir::OpDef def{
      .name = "hardmax",
      .summary = "1 at the first largest element along one axis, else 0; the first NaN is largest.",
      .attrs = {optional("axis", int64_t{-1})},
      .infer = infer_hardmax,
      .decompose = decompose_hardmax,
      .no_gradient = "it jumps between 0 and 1",
      .onnx = {.name = "Hardmax", .attrs = "axis", .since = 13},
      .draw = {.node = draw_along, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
