#include "ops/support/norms.h"

namespace pyc::ops {

Moments moments(Compose& c, ValueId x, const Ints& axes) {
  Moments m{};
  m.mean = c.op("reduce_mean", {x}, {{"axes", axes}});
  m.centred = c.sub(x, m.mean);
  m.var = c.op("reduce_mean", {c.mul(m.centred, m.centred)}, {{"axes", axes}});
  return m;
}

Ints axes_from(int64_t axis, int64_t rank) {
  Ints axes;
  for (int64_t i = from_front(axis, rank); i < rank; ++i) axes.push_back(i);
  return axes;
}

Types infer_channel_norm(const InferArgs& args, std::span<const std::string_view> names,
                         int64_t min_rank) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kFloats));
  if (x.rank() < min_rank) {
    return refuse(Code::kRankMismatch, "x must have rank ", min_rank, " or more, found ", x);
  }
  for (size_t i = 1; i < args.inputs.size(); ++i) {
    PYC_TRY(require_same_dtype(x, args.inputs[i]));
    if (args.inputs[i].shape == Shape{x.shape[1]}) continue;
    return refuse(Code::kShapeMismatch, "", names[i], " must have shape [", x.shape[1], "], found ",
                  args.inputs[i]);
  }
  return one(x.dtype, x.shape);
}

ValueId channel_input(Compose& c, size_t i) {
  const TensorType x = c.input_type(0);
  Ints shape(static_cast<size_t>(x.rank() - 1), 1);
  shape[0] = x.shape[1];
  return c.reshape(c.wide_input(i), shape);
}

}  // namespace pyc::ops
