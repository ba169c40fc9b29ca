#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_frames(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  const int64_t axis = from_front(args.attr_int("axis"), x.rank());
  const int64_t length = args.attr_int("length");
  const int64_t step = args.attr_int("step");
  Shape shape = x.shape;
  int64_t& dim = shape[static_cast<size_t>(axis)];
  if (step < 1 || length < 1 || length > dim) {
    return refuse(Code::kInvalidArgument, "frames of ", length, " every ", step, " do not fit dim ",
                  axis, " of ", x);
  }
  const int64_t frames = (dim - length) / step + 1;
  dim = length;
  shape.insert(shape.begin() + axis, frames);
  return one(x.dtype, std::move(shape));
}

Expr lower_frames(LowerContext& context, int, std::span<const Expr> index) {
  const auto axis =
      static_cast<size_t>(from_front(context.attr_int("axis"), context.input_type(0).rank()));
  Index at = to_index(index.first(axis));
  at.push_back(index[axis] * context.index(context.attr_int("step")) + index[axis + 1]);
  for (const Expr& i : index.subspan(axis + 2)) at.push_back(i);
  return context.input(0, at);
}

Grads gradient_frames(ir::GraphBuilder& builder, const ir::Node& node,
                      std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const int64_t axis = from_front(b.attrs().attr_int("axis"), b.input_type(0).rank());
  const Shape shape = b.type(b.g()).shape;
  const int64_t count = shape[static_cast<size_t>(axis)];
  const int64_t length = b.attrs().attr_int("length");
  const int64_t step = b.attrs().attr_int("step");
  std::vector<double> at;
  for (int64_t f = 0; f < count; ++f) {
    for (int64_t i = 0; i < length; ++i) at.push_back(static_cast<double>(f * step + i));
  }
  const ValueId indices = b.constant(DType::kI64, {count, length}, at);
  const ValueId of_x =
      sum_at(b, indices_first(b, b.g(), axis, 2), indices, axis, b.input_type(0).shape);
  return b.outputs({b.stored(of_x, 0)});
}

Result<ValueId> draw_frames(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t axis = d.axis(std::ssize(shape));
  const int64_t n = shape[static_cast<size_t>(axis < 0 ? axis + std::ssize(shape) : axis)];
  return d.op({d.tensor(t, shape)},
              {{"axis", axis}, {"length", d.pick(1, n)}, {"step", d.pick(1, 4)}});
}

}  // namespace

const ir::OpDef& op_frames() {
  static const ir::OpDef def{
      .name = "frames",
      .summary =
          "Windows of `length` elements every `step` along an axis; the frame's number is a new "
          "axis in front of it.",
      .attrs = {required("axis", ir::AttrKind::kInt), required("length", ir::AttrKind::kInt),
                required("step", ir::AttrKind::kInt)},
      .infer = infer_frames,
      .lower = lower_frames,
      .traits = {.moves_data = true},
      .gradient = gradient_frames,
      .draw = {.node = draw_frames},
  };
  return def;
}

}  // namespace pyc::ops
