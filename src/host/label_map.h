#pragma once

#include "base/dyn_value.h"
#include "base/status.h"

namespace pyc::host {

// Maps every element of the input that is among the keys to the value beside it, the last of equal
// keys counting, and every other one to `fallback` (one element). Keys and values are of rank 1
// and one length. NaN is equal to NaN.
Result<DynValue> map_labels(const DynValue& input, const DynValue& keys, const DynValue& values,
                            const DynValue& fallback);

}  // namespace pyc::host
