#pragma once

// Selections whose size depends on the data.

#include <optional>

#include "base/dyn_value.h"
#include "host/elements.h"

namespace pyc::host {

// The indices of the elements that are not 0 (strings: not empty), as i64[rank, count] in row-major
// order.
Result<DynValue> nonzero(const DynValue& input);

// The entries of an axis, or without one the elements of the flattened input, whose condition is
// true; a condition shorter than the axis leaves the rest out.
Result<DynValue> compress(const DynValue& input, const DynValue& condition,
                          std::optional<int64_t> axis);

struct UniqueResult {
  DynValue values;
  DynValue first;    // i64: where each one is met first
  DynValue inverse;  // i64: for each entry of the input its place among the values
  DynValue counts;   // i64
};
// The distinct entries of an axis, or without one the distinct elements; ascending (NaN last), or
// in the order they are met in.
Result<UniqueResult> unique(const DynValue& input, std::optional<int64_t> axis, bool sorted);

}  // namespace pyc::host
