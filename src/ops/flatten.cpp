#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_flatten(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const int64_t axis = args.attr_int("axis");
  if (axis < -x.rank() || axis > x.rank()) {
    return refuse(Code::kInvalidArgument, "axis ", axis, " is outside of ", x);
  }
  Shape shape{1, 1};
  for (int64_t i = 0; i < x.rank(); ++i) {
    shape[i < from_front(axis, x.rank()) ? 0 : 1] *= x.shape[static_cast<size_t>(i)];
  }
  return one(x.dtype, std::move(shape));
}

ValueId gradient_flatten(Backward& b) { return b.reshape(b.g(), b.input_type(0).shape); }

Result<ValueId> draw_flatten(Draw& d, DType t) {
  const Shape shape = d.shape();
  const int64_t rank = std::ssize(shape);
  return d.op({d.tensor(t, shape)}, {{"axis", d.pick(-rank, rank)}});
}

}  // namespace

const ir::OpDef& op_flatten() {
  static const ir::OpDef def{
      .name = "flatten",
      .summary = "x as a matrix: the dims before axis make up its rows, the others its columns.",
      .attrs = {optional("axis", int64_t{1})},
      .infer = infer_flatten,
      .lower = same_position,
      .traits = {.moves_data = true},
      .gradient = gradient_of_one<gradient_flatten>,
      .onnx = {.name = "Flatten", .attrs = "axis", .small = true},
      .draw = {.node = draw_flatten},
  };
  return def;
}

}  // namespace pyc::ops
