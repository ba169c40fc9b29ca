#include "ops/support/compose.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/convert.h"

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

ValueId Compose::reshape(ValueId x, ir::Shape shape) {
  return op("reshape", {x}, {{"shape", std::move(shape)}});
}

ValueId Compose::expand(ValueId x, ir::Shape shape) {
  return op("expand", {x}, {{"shape", std::move(shape)}});
}

ValueId Compose::transpose(ValueId x, std::vector<int64_t> perm) {
  return op("transpose", {x}, {{"perm", std::move(perm)}});
}

ValueId Compose::slice(ValueId x, int64_t axis, int64_t begin, int64_t end) {
  using Ints = std::vector<int64_t>;
  return op("slice", {x}, {{"starts", Ints{begin}}, {"ends", Ints{end}}, {"axes", Ints{axis}}});
}

ValueId Compose::concat(std::vector<ValueId> parts, int64_t axis) {
  // An element of a concatenation asks each part in turn.
  constexpr size_t kTogether = 32;
  while (parts.size() > kTogether) {
    std::vector<ValueId> joined;
    for (size_t i = 0; i < parts.size(); i += kTogether) {
      const size_t end = std::min(i + kTogether, parts.size());
      joined.push_back(concat({parts.begin() + static_cast<std::ptrdiff_t>(i),
                               parts.begin() + static_cast<std::ptrdiff_t>(end)},
                              axis));
    }
    parts = std::move(joined);
  }
  if (parts.size() == 1) return parts[0];
  return op("concat", std::move(parts), {{"axis", axis}});
}

ValueId Compose::constant(DType t, ir::Shape shape, const std::vector<double>& values) {
  if (!status_.ok()) return ir::kNoId;
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(dtype_size(t)));
  std::byte* at = bytes.data();
  for (double value : values) {
    store_word(at, t, word_from_double(value, t));
    at += dtype_size(t);
  }
  return take(builder_.constant({t, std::move(shape)}, ir::dense_data(std::move(bytes))));
}

ValueId Compose::positions(int64_t rank, int64_t axis, int64_t count) {
  ir::Shape shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = count;
  std::vector<double> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0);
  return constant(DType::kI64, std::move(shape), values);
}

ValueId Compose::wide_input(size_t i) {
  return cast(node_.inputs[i], compute_dtype(input_type(i).dtype));
}

Result<std::vector<ValueId>> Compose::outputs(std::vector<ValueId> values) {
  if (!status_.ok()) return status_;
  return values;
}

ValueId real_input(Compose& c) {
  const DType t = c.input_type(0).dtype;
  return c.cast(c.input(0), is_float(t) ? compute_dtype(t) : DType::kF64);
}

ValueId inverse_deviation(Compose& c, ValueId var, double epsilon) {
  return c.op("reciprocal", {c.op("sqrt", {c.shift(var, epsilon)})});
}

ValueId normalize(Compose& c, ValueId centred, ValueId var, double epsilon, ValueId gamma,
                  ValueId beta) {
  const ValueId scaled = c.mul(c.mul(centred, inverse_deviation(c, var, epsilon)), gamma);
  return beta == ir::kNoId ? scaled : c.add(scaled, beta);
}

}  // namespace pyc::ops
