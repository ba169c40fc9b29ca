#include "ops/support/optimizer.h"

namespace pyc::ops {
namespace {

Status require_scalar(std::string_view name, const TensorType& type) {
  if (type.elements() == 1 && type.rank() <= 1) return {};
  return refuse(Code::kShapeMismatch, "", name, " must be a scalar, found ", type);
}

}  // namespace

Types infer_optimizer(const InferArgs& args) {
  const TensorType& x = args.inputs[2];
  PYC_TRY(require_dtype("rate", args.inputs[0], kFloats));
  PYC_TRY(require_scalar("rate", args.inputs[0]));
  PYC_TRY(require_dtype("step", args.inputs[1], kIndices));
  PYC_TRY(require_scalar("step", args.inputs[1]));
  PYC_TRY(require_dtype("x", x, kFloats));
  for (size_t i = 3; i < args.inputs.size(); ++i) {
    if (args.inputs[i] == x) continue;
    return refuse(Code::kShapeMismatch, "gradient and states must be like x ", x, ", found ",
                  args.inputs[i]);
  }
  std::vector<TensorType> results{x};
  results.insert(results.end(), args.inputs.begin() + 4, args.inputs.end());
  return results;
}

OptimizerInputs optimizer_inputs(Compose& c) {
  OptimizerInputs in{};
  in.x = c.wide_input(2);
  in.rate = c.reshape(c.cast(c.input(0), c.type(in.x).dtype), {});
  const ValueId step = c.reshape(c.input(1), {});
  in.later = c.op("less", {c.scalar_like(step, 0.0), step});
  const double coefficient = c.attrs().attr_float("norm_coefficient");
  in.g = coefficient == 0.0 ? c.wide_input(3) : c.add(c.scale(in.x, coefficient), c.wide_input(3));
  return in;
}

Result<std::vector<ValueId>> optimizer_outputs(Compose& c, std::vector<ValueId> results) {
  for (ValueId& y : results) y = c.cast(y, c.input_type(2).dtype);
  return c.outputs(std::move(results));
}

}  // namespace pyc::ops
