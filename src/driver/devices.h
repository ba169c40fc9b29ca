#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "base/status.h"

namespace pyc::driver {

// The backend of a device name, alive for the whole process; kUnknownOption with the known names
// otherwise.
Result<const backends::Backend*> find_backend(std::string_view device);
std::vector<std::string_view> device_names();
// That models of the device can run here, as its loader says.
Status check_runs(std::string_view device);
// The loaders of all backends, for runtime::load_engine.
std::span<const runtime::Loader* const> loaders();

}  // namespace pyc::driver
