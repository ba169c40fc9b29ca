#pragma once

// Sequences: values in a row, each of any shape.

#include <optional>

#include "base/dyn_value.h"
#include "host/elements.h"

namespace pyc::host {

// Positions count from the front, or below 0 from the back; kInvalidArgument when out of range.
// Without a position: at the end.
Result<DynValue> sequence_insert(const DynValue& sequence, const DynValue& item,
                                 std::optional<int64_t> at);
Result<DynValue> sequence_erase(const DynValue& sequence, std::optional<int64_t> at);
Result<DynValue> sequence_at(const DynValue& sequence, int64_t at);

// Cuts an array along an axis into parts of the given sizes, which add up to the axis.
Result<DynValue> split_to_sequence(const DynValue& input, size_t axis, const Ints& sizes);

}  // namespace pyc::host
