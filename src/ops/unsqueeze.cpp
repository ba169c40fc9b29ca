#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_unsqueeze(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints& axes = args.attr_ints("axes");
  TensorType y{x.dtype, Shape(x.shape.size() + axes.size(), 0)};
  PYC_TRY(ir::check_type(y));
  PYC_TRY(require_axes(axes, y));
  for (int64_t axis : axes) y.shape[static_cast<size_t>(from_front(axis, y.rank()))] = 1;
  size_t next = 0;
  for (int64_t& dim : y.shape) {
    if (dim != 1) dim = x.shape[next++];
  }
  return one(y.dtype, std::move(y.shape));
}

ValueId gradient_unsqueeze(Backward& b) { return b.reshape(b.g(), b.input_type(0).shape); }

Result<ValueId> draw_unsqueeze(Draw& d, DType t) {
  const Shape shape = d.shape(0, 5);
  const int64_t added = d.pick(0, 3);
  Ints axes = d.permutation(std::ssize(shape) + added);
  axes.resize(static_cast<size_t>(added));
  return d.op({d.tensor(t, shape)}, {{"axes", axes}});
}

}  // namespace

const ir::OpDef& op_unsqueeze() {
  static const ir::OpDef def{
      .name = "unsqueeze",
      .summary = "x with new dims of size 1; axes count the dims of the result.",
      .attrs = {required("axes", ir::AttrKind::kInts)},
      .infer = infer_unsqueeze,
      .lower = same_position,
      .traits = {.moves_data = true},
      .gradient = gradient_of_one<gradient_unsqueeze>,
      .draw = {.node = draw_unsqueeze},
  };
  return def;
}

}  // namespace pyc::ops
