#pragma once

#include <string>

#include "base/dyn_value.h"
#include "base/status.h"

namespace pyc::host {

// For each string whether the pattern (of RE2) matches all of it: bool. kUnsupported when PyC was
// built without RE2.
Result<DynValue> match_fully(const DynValue& input, const std::string& pattern);

}  // namespace pyc::host
