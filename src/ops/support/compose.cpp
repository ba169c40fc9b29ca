#include "ops/support/compose.h"

namespace pyc::ops {

ValueId Compose::take(Result<ValueId> result) {
  if (result.ok()) return *result;
  status_ = std::move(result).status();
  return ir::kNoId;
}

ValueId Compose::op(std::string_view name, std::vector<ValueId> inputs, ir::Attrs attrs) {
  if (!status_.ok()) return ir::kNoId;
  return take(builder_.op(name, std::move(inputs), std::move(attrs), "", node_.loc));
}

ValueId Compose::scalar_like(ValueId other, double value) {
  if (!status_.ok()) return ir::kNoId;
  return take(builder_.scalar(builder_.type(other).dtype, value));
}

ValueId Compose::cast(ValueId x, DType to) {
  if (!status_.ok() || builder_.type(x).dtype == to) return x;
  return op("cast", {x}, {{"saturate", false}, {"to", to}});
}

ValueId Compose::wide_input(size_t i) {
  return cast(node_.inputs[i], compute_dtype(input_type(i).dtype));
}

Result<std::vector<ValueId>> Compose::outputs(std::vector<ValueId> values) {
  if (!status_.ok()) return status_;
  return values;
}

ValueId normalize(Compose& c, ValueId centred, ValueId var, double epsilon, ValueId gamma,
                  ValueId beta) {
  const ValueId deviation = c.op("sqrt", {c.op("add", {var, c.scalar_like(var, epsilon)})});
  const ValueId scaled = c.op("mul", {c.op("div", {centred, deviation}), gamma});
  return beta == ir::kNoId ? scaled : c.op("add", {scaled, beta});
}

}  // namespace pyc::ops
