#include "host/elements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/convert.h"
#include "base/value_meter.h"

namespace pyc::host {
namespace {

int64_t product(std::span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

Status unexpected(std::string_view what, std::string_view expected, const DynValue& found) {
  return {Code::kDtypeMismatch,
          fmt::format("{}: expected {}, found {}", what, expected, found.to_string())};
}

int64_t most_of(const DynValue& value) { return value.is_tensor() ? kMaxElements : kMaxStrings; }

// Dims beside one that is 0 are bounded too: products of them must not overflow.
Status check_dims(const DynValue& value, std::string_view what) {
  Ints dims;
  for (const int64_t d : value.shape) {
    if (d != 0) dims.push_back(d);
  }
  auto bytes = tensor_bytes(DType::kU8, dims);
  return bytes.ok() ? Status() : std::move(bytes).status().with_context(what);
}

bool same_elements(const DynValue& a, const DynValue& b) {
  return a.kind == b.kind && (!a.is_tensor() || a.dtype == b.dtype);
}

}  // namespace

Result<int64_t> element_count(const Ints& shape, int64_t most) {
  PYC_ASSIGN(const int64_t count, tensor_bytes(DType::kU8, shape));
  if (count > most) {
    return Status(Code::kBudgetExceeded, fmt::format("[{}] is over the limit of {} elements",
                                                     fmt::join(shape, ","), most));
  }
  return count;
}

Status check_array(const DynValue& value, std::string_view what) {
  if (value.kind == DynValue::Kind::kStrings) return check_strings(value, what);
  return check_tensor(value, what);
}

Status check_numbers(const DynValue& value, std::string_view what) {
  if (value.is_tensor() && is_complex(value.dtype)) {
    return unexpected(what, "a tensor of real numbers", value);
  }
  return check_tensor(value, what);
}

Status check_tensor(const DynValue& value, std::string_view what) {
  if (!value.is_tensor()) return unexpected(what, "a tensor of numbers", value);
  PYC_TRY(check_dims(value, what));
  PYC_ASSIGN(const int64_t bytes, tensor_bytes(value.dtype, value.shape));
  if (bytes != static_cast<int64_t>(value.bytes.size())) {
    return {Code::kSizeMismatch, fmt::format("{}: {} needs {} bytes, found {}", what,
                                             value.to_string(), bytes, value.bytes.size())};
  }
  return {};
}

Status check_strings(const DynValue& value, std::string_view what) {
  if (value.kind != DynValue::Kind::kStrings || value.strings == nullptr) {
    return unexpected(what, "a tensor of strings", value);
  }
  PYC_TRY(check_dims(value, what));
  PYC_ASSIGN(const int64_t count, element_count(value.shape, kMaxStrings));
  if (count != static_cast<int64_t>(value.strings->size())) {
    return {Code::kSizeMismatch, fmt::format("{}: {} needs {} strings, found {}", what,
                                             value.to_string(), count, value.strings->size())};
  }
  return {};
}

Status check_sequence(const DynValue& value, std::string_view what) {
  if (value.kind != DynValue::Kind::kSequence || value.items == nullptr) {
    return unexpected(what, "a sequence", value);
  }
  return {};
}

Status check_rank(const DynValue& value, size_t rank, std::string_view what) {
  if (value.shape.size() == rank) return {};
  return {Code::kRankMismatch,
          fmt::format("{}: expected rank {}, found {}", what, rank, value.to_string())};
}

Result<size_t> axis_in(int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) {
    return Status(Code::kInvalidArgument,
                  fmt::format("axis {} is out of range for rank {}", axis, rank));
  }
  return static_cast<size_t>(axis < 0 ? axis + r : axis);
}

namespace {

Status check_one(const DynValue& value, std::string_view what) {
  PYC_TRY(check_numbers(value, what));
  if (value.elements() == 1) return {};
  return {Code::kShapeMismatch,
          fmt::format("{}: expected one element, found {}", what, value.to_string())};
}

}  // namespace

Result<int64_t> one_int(const DynValue& value, std::string_view what) {
  PYC_TRY(check_one(value, what));
  if (is_float(value.dtype)) return unexpected(what, "an integer", value);
  return to_ints(value)[0];
}

Result<double> one_double(const DynValue& value, std::string_view what) {
  PYC_TRY(check_one(value, what));
  return to_doubles(value)[0];
}

Result<bool> one_bool(const DynValue& value, std::string_view what) {
  PYC_TRY(check_one(value, what));
  return to_doubles(value)[0] != 0.0;
}

AxisView view_axis(std::span<const int64_t> shape, size_t axis) {
  return {.outer = product(shape.first(axis)),
          .dim = shape[axis],
          .inner = product(shape.subspan(axis + 1))};
}

Status NewStrings::add(std::string_view text) {
  bytes_ += static_cast<int64_t>(sizeof(std::string) + text.size());
  PYC_TRY(check_room(bytes_));
  strings_.emplace_back(text);
  return {};
}

Result<DynValue> pick(const DynValue& value, Ints shape, std::span<const int64_t> from) {
  PYC_TRY(check_array(value, "input"));
  const int64_t count = value.elements();
  for (const int64_t i : from) {
    if (i < 0 || i >= count) {
      return Status(Code::kInvalidArgument,
                    fmt::format("element {} of {} is out of range", i, value.to_string()));
    }
  }
  PYC_ASSIGN(const int64_t wanted, element_count(shape, most_of(value)));
  if (wanted != static_cast<int64_t>(from.size())) {
    return Status(Code::kSizeMismatch, fmt::format("[{}] has {} elements, {} are given",
                                                   fmt::join(shape, ","), wanted, from.size()));
  }
  if (!value.is_tensor()) {
    NewStrings strings;
    for (const int64_t i : from) PYC_TRY(strings.add((*value.strings)[static_cast<size_t>(i)]));
    return std::move(strings).finish(std::move(shape));
  }
  PYC_ASSIGN(NewTensor made, new_tensor(value.dtype, std::move(shape)));
  const auto size = static_cast<size_t>(dtype_size(value.dtype));
  for (size_t i = 0; i < from.size(); ++i) {
    std::memcpy(made.data + i * size, value.bytes.data() + static_cast<size_t>(from[i]) * size,
                size);
  }
  return made.value;
}

Result<DynValue> take(const DynValue& value, size_t axis, std::span<const int64_t> at) {
  PYC_TRY(check_array(value, "input"));
  const AxisView view = view_axis(value.shape, axis);
  for (const int64_t i : at) {
    if (i < 0 || i >= view.dim) {
      return Status(Code::kInvalidArgument, fmt::format("entry {} of axis {} of {} is out of range",
                                                        i, axis, value.to_string()));
    }
  }
  Ints shape = value.shape;
  shape[axis] = static_cast<int64_t>(at.size());
  PYC_ASSIGN(const int64_t count, element_count(shape, most_of(value)));
  if (count == 0) return zeros_like(value, std::move(shape));
  Ints from;
  from.reserve(static_cast<size_t>(count));
  for (int64_t o = 0; o < view.outer; ++o) {
    for (const int64_t i : at) {
      const int64_t begin = (o * view.dim + i) * view.inner;
      for (int64_t k = 0; k < view.inner; ++k) from.push_back(begin + k);
    }
  }
  return pick(value, std::move(shape), from);
}

Result<DynValue> entry(const DynValue& value, size_t axis, int64_t at) {
  PYC_ASSIGN(DynValue one, take(value, axis, std::span(&at, 1)));
  one.shape.erase(one.shape.begin() + static_cast<int64_t>(axis));
  return one;
}

Result<DynValue> reshaped(const DynValue& value, Ints shape) {
  PYC_TRY(check_array(value, "input"));
  PYC_ASSIGN(const int64_t count, tensor_bytes(DType::kU8, shape));
  if (count != value.elements()) {
    return Status(Code::kSizeMismatch,
                  fmt::format("{} does not fit [{}]", value.to_string(), fmt::join(shape, ",")));
  }
  DynValue same = value;
  same.shape = std::move(shape);
  return same;
}

Result<DynValue> concat(std::span<const DynValue> parts, size_t axis) {
  if (parts.empty()) return Status(Code::kInvalidArgument, "there is nothing to join");
  Ints shape = parts[0].shape;
  for (const DynValue& part : parts) {
    PYC_TRY(check_array(part, "input"));
    Ints expected = shape;
    if (part.shape.size() == shape.size()) expected[axis] = part.shape[axis];
    if (!same_elements(part, parts[0]) || part.shape != expected) {
      return Status(Code::kShapeMismatch,
                    fmt::format("{} and {} cannot be joined along axis {}", parts[0].to_string(),
                                part.to_string(), axis));
    }
  }
  shape[axis] = 0;
  for (const DynValue& part : parts) shape[axis] += part.shape[axis];
  PYC_ASSIGN(const int64_t count, tensor_bytes(DType::kU8, shape));
  if (count == 0) return zeros_like(parts[0], std::move(shape));
  const AxisView whole = view_axis(shape, axis);
  if (!parts[0].is_tensor()) {
    PYC_ASSIGN([[maybe_unused]] const int64_t fits, element_count(shape, kMaxStrings));
    NewStrings strings;
    for (int64_t o = 0; o < whole.outer; ++o) {
      for (const DynValue& part : parts) {
        const int64_t row = part.shape[axis] * whole.inner;
        for (int64_t i = o * row; i < (o + 1) * row; ++i) {
          PYC_TRY(strings.add((*part.strings)[static_cast<size_t>(i)]));
        }
      }
    }
    return std::move(strings).finish(std::move(shape));
  }
  PYC_ASSIGN(NewTensor made, new_tensor(parts[0].dtype, shape));
  std::byte* to = made.data;
  const int64_t unit = whole.inner * dtype_size(parts[0].dtype);
  for (int64_t o = 0; o < whole.outer; ++o) {
    for (const DynValue& part : parts) {
      const auto row = static_cast<size_t>(part.shape[axis] * unit);
      if (row == 0) continue;
      std::memcpy(to, part.bytes.data() + static_cast<size_t>(o) * row, row);
      to += row;
    }
  }
  return made.value;
}

Result<DynValue> stack(std::span<const DynValue> parts, size_t axis) {
  std::vector<DynValue> with_axis;
  for (const DynValue& part : parts) {
    if (axis > part.shape.size()) {
      return Status(Code::kInvalidArgument,
                    fmt::format("axis {} is out of range for {}", axis, part.to_string()));
    }
    with_axis.push_back(part);
    Ints& shape = with_axis.back().shape;
    shape.insert(shape.begin() + static_cast<int64_t>(axis), 1);
  }
  return concat(with_axis, axis);
}

Result<DynValue> zeros_like(const DynValue& value, Ints shape) {
  if (!value.is_tensor()) {
    PYC_ASSIGN(const int64_t count, element_count(shape, kMaxStrings));
    PYC_TRY(check_room(count * static_cast<int64_t>(sizeof(std::string))));
    return DynValue::of_strings(std::move(shape),
                                std::vector<std::string>(static_cast<size_t>(count)));
  }
  PYC_ASSIGN(NewTensor made, new_tensor(value.dtype, std::move(shape)));
  if (!made.value.bytes.empty()) std::memset(made.data, 0, made.value.bytes.size());
  return made.value;
}

namespace {

template <class T, class Convert>
Result<DynValue> make_tensor(DType dtype, Ints shape, std::span<const T> values, Convert convert) {
  PYC_ASSIGN(NewTensor made, new_tensor(dtype, std::move(shape)));
  const auto size = static_cast<size_t>(dtype_size(dtype));
  if (made.value.bytes.size() != values.size() * size) {
    return Status(Code::kSizeMismatch,
                  fmt::format("{} does not hold {} values", made.value.to_string(), values.size()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    store_word(made.data + i * size, dtype, convert(values[i], dtype));
  }
  return made.value;
}

}  // namespace

Result<DynValue> tensor_of(DType dtype, Ints shape, std::span<const double> values) {
  return make_tensor(dtype, std::move(shape), values, word_from_double);
}

Result<DynValue> tensor_of(DType dtype, Ints shape, std::span<const int64_t> values) {
  return make_tensor(dtype, std::move(shape), values, word_from_int);
}

Result<Ints> broadcast(const Ints& a, const Ints& b) {
  Ints out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      return Status(Code::kShapeMismatch,
                    fmt::format("[{}] and [{}] cannot be stretched to one shape", fmt::join(a, ","),
                                fmt::join(b, ",")));
    }
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  PYC_ASSIGN([[maybe_unused]] const int64_t count, element_count(out, kMaxStrings));
  return out;
}

Ints broadcast_reads(const Ints& from, const Ints& to) {
  Ints reads{0};
  int64_t stride = 1;
  // From the last axis on: what was there is repeated for each entry of the next one.
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t axis = to.size() - 1 - i;
    const int64_t dim = i < from.size() ? from[from.size() - 1 - i] : 1;
    Ints next;
    next.reserve(reads.size() * static_cast<size_t>(to[axis]));
    for (int64_t k = 0; k < to[axis]; ++k) {
      for (const int64_t r : reads) next.push_back(r + (dim == 1 ? 0 : k * stride));
    }
    reads = std::move(next);
    stride *= dim;
  }
  return reads;
}

}  // namespace pyc::host
