#include "ops/support/losses.h"

namespace pyc::ops {

Status require_class_targets(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& target = args.inputs[1];
  PYC_TRY(require_dtype("x", x, kFloats));
  PYC_TRY(require_dtype("target", target, kIndices));
  if (x.rank() < 2) return refuse(Code::kRankMismatch, "x must have rank 2 or more, found ", x);
  Shape expected = x.shape;
  expected.erase(expected.begin() + 1);
  if (target.shape != expected) {
    return refuse(Code::kShapeMismatch, "target must have shape ", expected, ", found ", target);
  }
  if (x.shape[1] == 0 && target.elements() > 0) {
    return refuse(Code::kShapeMismatch, "x ", x, " has no classes");
  }
  if (args.inputs.size() < 3) return {};
  PYC_TRY(require_same_dtype(x, args.inputs[2]));
  if (args.inputs[2].shape == Shape{x.shape[1]}) return {};
  return refuse(Code::kShapeMismatch, "weight must have shape [", x.shape[1], "], found ",
                args.inputs[2]);
}

Status require_loss_reduction(const InferArgs& args) {
  const std::string& reduction = args.attr_string("reduction");
  if (reduction == "none" || reduction == "sum" || reduction == "mean") return {};
  return refuse(Code::kInvalidArgument, "reduction must be \"none\", \"sum\" or \"mean\", found \"",
                reduction, "\"");
}

Shape loss_shape(const InferArgs& args) {
  return args.attr_string("reduction") == "none" ? args.inputs[1].shape : Shape{};
}

}  // namespace pyc::ops
