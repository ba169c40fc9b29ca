#pragma once

// Moving elements about, for number tensors and string tensors alike, and the checks every host
// function begins with.

#include <span>
#include <string_view>
#include <vector>

#include "base/dyn_value.h"
#include "base/status.h"

namespace pyc::host {

using Ints = std::vector<int64_t>;

// Whether it is a tensor of numbers or of strings whose content is as large as its shape says.
Status check_array(const DynValue& value, std::string_view what);
// The same for numbers of any kind, for real numbers, and for strings only.
Status check_tensor(const DynValue& value, std::string_view what);
Status check_numbers(const DynValue& value, std::string_view what);
Status check_strings(const DynValue& value, std::string_view what);
Status check_sequence(const DynValue& value, std::string_view what);
Status check_rank(const DynValue& value, size_t rank, std::string_view what);

// The number of elements a host function may work on: kBudgetExceeded when they are more than
// kMaxElements, kInvalidArgument for a negative dim.
inline constexpr int64_t kMaxElements = int64_t{1} << 28;
inline constexpr int64_t kMaxStrings = int64_t{1} << 24;
Result<int64_t> element_count(const Ints& shape, int64_t most = kMaxElements);

// Counted from the front; kInvalidArgument when out of [-rank, rank).
Result<size_t> axis_in(int64_t axis, size_t rank);
// The only element of a number tensor.
Result<int64_t> one_int(const DynValue& value, std::string_view what);
Result<double> one_double(const DynValue& value, std::string_view what);
Result<bool> one_bool(const DynValue& value, std::string_view what);

// An array seen as [outer, dim, inner] around one axis.
struct AxisView {
  int64_t outer = 1;
  int64_t dim = 1;
  int64_t inner = 1;
};
AxisView view_axis(std::span<const int64_t> shape, size_t axis);

// Strings of a new array. What is more than the run may hold is refused before it is there.
class NewStrings {
 public:
  Status add(std::string_view text);
  DynValue finish(Ints shape) && {
    return DynValue::of_strings(std::move(shape), std::move(strings_));
  }

 private:
  std::vector<std::string> strings_;
  int64_t bytes_ = 0;
};

// The array of `shape` whose element i is element from[i] of `value`; kInvalidArgument when one is
// out of range.
Result<DynValue> pick(const DynValue& value, Ints shape, std::span<const int64_t> from);
// The entries `at` of one axis; kInvalidArgument when one is out of range.
Result<DynValue> take(const DynValue& value, size_t axis, std::span<const int64_t> at);
// One entry of an axis, the axis gone.
Result<DynValue> entry(const DynValue& value, size_t axis, int64_t at);
// kSizeMismatch when the numbers of elements differ.
Result<DynValue> reshaped(const DynValue& value, Ints shape);
// Arrays of one element type and, but for the axis, one shape. At least one.
Result<DynValue> concat(std::span<const DynValue> parts, size_t axis);
// The same along a new axis.
Result<DynValue> stack(std::span<const DynValue> parts, size_t axis);
// An array of these elements with zeros, or empty strings, in it.
Result<DynValue> zeros_like(const DynValue& value, Ints shape);

// A tensor of these values, converted to `dtype`.
Result<DynValue> tensor_of(DType dtype, Ints shape, std::span<const double> values);
Result<DynValue> tensor_of(DType dtype, Ints shape, std::span<const int64_t> values);

// The shape two arrays are stretched to, and for each element of it the element it reads of an
// array of `from`.
Result<Ints> broadcast(const Ints& a, const Ints& b);
Ints broadcast_reads(const Ints& from, const Ints& to);

}  // namespace pyc::host
