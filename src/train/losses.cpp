#include <fmt/format.h>

#include "train/compose.h"

namespace pyc::train {

Result<ir::TensorType> target_type(Loss loss, const ir::TensorType& prediction) {
  if (!is_float(prediction.dtype)) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("the model's first output is {}: a loss takes floats", prediction.to_string()));
  }
  if (loss != Loss::kCrossEntropy) return prediction;
  if (prediction.shape.size() < 2) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("the model's first output is {}: cross_entropy takes [rows, classes] or "
                    "more dims, classes in axis 1",
                    prediction.to_string()));
  }
  ir::TensorType labels{DType::kI64, prediction.shape};
  labels.shape.erase(labels.shape.begin() + 1);
  return labels;
}

ValueId loss_of(StepComposer& c, Loss loss, ValueId p, ValueId y) {
  switch (loss) {
    case Loss::kOutput:
      return c.reshape(p, {});
    case Loss::kMse: {
      const ValueId d = c.sub(p, y);
      return c.mean(c.mul(d, d));
    }
    case Loss::kL1:
      return c.mean(c.op("abs", {c.sub(p, y)}));
    case Loss::kHuber: {
      const ValueId d = c.sub(p, y);
      const ValueId size = c.op("abs", {d});
      const ValueId near = c.scale(c.mul(d, d), 0.5);
      const ValueId far = c.shift(size, -0.5);
      return c.mean(
          c.op("where", {c.op("less_equal", {size, c.scalar_like(size, 1.0)}), near, far}));
    }
    case Loss::kCrossEntropy:
      return c.op("softmax_cross_entropy_loss", {p, y});
    case Loss::kBce:
      // max(p, 0) - p·y + log(1 + exp(-|p|)): nothing overflows.
      return c.mean(c.add(c.sub(c.op("relu", {p}), c.mul(p, y)),
                          c.op("log1p", {c.op("exp", {c.op("neg", {c.op("abs", {p})})})})));
  }
  return ir::kNoId;
}

}  // namespace pyc::train
