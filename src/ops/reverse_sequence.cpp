#include <algorithm>

#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_reverse_sequence(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& lengths = args.inputs[1];
  const Ints axes{args.attr_int("batch_axis"), args.attr_int("time_axis")};
  PYC_TRY(require_axes(axes, x));
  PYC_TRY(require_dtype("lengths", lengths, kIndices));
  const int64_t batch = x.shape[static_cast<size_t>(from_front(axes[0], x.rank()))];
  if (lengths.shape != Shape{batch}) {
    return refuse(Code::kShapeMismatch, "lengths must have shape [", batch, "], found ", lengths);
  }
  return one(x.dtype, x.shape);
}

Expr lower_reverse_sequence(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& x = context.input_type(0);
  const auto dim_of = [&](std::string_view attr) {
    return static_cast<size_t>(from_front(context.attr_int(attr), x.rank()));
  };
  const size_t time = dim_of("time_axis");
  const Expr length = convert(context.input(1, Index{index[dim_of("batch_axis")]}), DType::kI64);
  context.check_input(1, between(context, length, 0, x.shape[time] + 1), {.last = x.shape[time]},
                      "length");
  const Expr last = context.index(std::max<int64_t>(x.shape[time] - 1, 0));
  const Expr mirrored = min(max(length - context.index(1) - index[time], context.index(0)), last);
  Index at = to_index(index);
  at[time] = select(lt(index[time], length), mirrored, index[time]);
  return context.input(0, at);
}

Grads gradient_reverse_sequence(ir::GraphBuilder& builder, const ir::Node& node,
                                std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  return b.outputs(
      {b.stored(b.op("reverse_sequence", {b.g(), b.input(1)}, node.attrs), 0), ir::kNoId});
}

Result<ValueId> draw_reverse_sequence(Draw& d, DType t) {
  const Shape shape = d.shape(2, 4, 1);
  const int64_t batch = d.pick(0, 1);
  const ValueId x = d.tensor(t, shape);
  const ValueId lengths =
      d.indices({shape[static_cast<size_t>(batch)]}, 1, shape[static_cast<size_t>(1 - batch)]);
  return d.op({x, lengths}, {{"batch_axis", batch}, {"time_axis", 1 - batch}});
}

}  // namespace

const ir::OpDef& op_reverse_sequence() {
  static const ir::OpDef def{
      .name = "reverse_sequence",
      .summary =
          "The first lengths[b] elements along the time axis reversed, for each b of the "
          "batch axis; the others stay.",
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {optional("batch_axis", int64_t{1}), optional("time_axis", int64_t{0})},
      .infer = infer_reverse_sequence,
      .lower = lower_reverse_sequence,
      .traits = {.moves_data = true},
      .gradient = gradient_reverse_sequence,
      .onnx = {.name = "ReverseSequence",
               .attrs = "batch_axis time_axis",
               .dtypes = "bool f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"},
      .draw = {.node = draw_reverse_sequence},
  };
  return def;
}

}  // namespace pyc::ops
