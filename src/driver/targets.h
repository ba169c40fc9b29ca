#pragma once

#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "base/status.h"

namespace pyc::driver {

// The targets and the stages of code of all devices.
std::vector<std::string_view> all_targets();
std::vector<std::string_view> code_stages();
// That the device makes code for the target; "" is this machine.
Status check_target(const backends::Backend& backend, std::string_view target);
// That programs of the place run here, as its loader says: kUnsupported with what is missing.
Status check_place(const runtime::Place& place);

}  // namespace pyc::driver
