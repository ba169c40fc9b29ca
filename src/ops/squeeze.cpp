#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_squeeze(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints& axes = args.attr_ints("axes");
  PYC_TRY(require_axes(axes, x));
  std::vector<bool> dropped(x.shape.size(), false);
  for (int64_t axis : axes) dropped[static_cast<size_t>(from_front(axis, x.rank()))] = true;
  Shape shape;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (dropped[i] && x.shape[i] != 1) {
      return refuse(Code::kShapeMismatch, "dim ", static_cast<int64_t>(i), " of ", x, " is not 1");
    }
    if (!dropped[i] && (!axes.empty() || x.shape[i] != 1)) shape.push_back(x.shape[i]);
  }
  return one(x.dtype, std::move(shape));
}

ValueId gradient_squeeze(Backward& b) { return b.reshape(b.g(), b.input_type(0).shape); }

Result<ValueId> draw_squeeze(Draw& d, DType t) {
  Shape shape = d.shape();
  Ints axes = d.axes(std::ssize(shape));
  for (const int64_t a : axes) shape[static_cast<size_t>(a < 0 ? a + std::ssize(shape) : a)] = 1;
  return d.op({d.tensor(t, shape)}, {{"axes", axes}});
}

}  // namespace

const ir::OpDef& op_squeeze() {
  static const ir::OpDef def{
      .name = "squeeze",
      .summary = "x without the dims of size 1 that axes name (none given: without all of them).",
      .attrs = {optional("axes", Ints{})},
      .infer = infer_squeeze,
      .lower = same_position,
      .traits = {.moves_data = true},
      .gradient = gradient_of_one<gradient_squeeze>,
      .draw = {.node = draw_squeeze},
  };
  return def;
}

}  // namespace pyc::ops
