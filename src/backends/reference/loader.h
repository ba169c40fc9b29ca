#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runtime/host_engine.h"

namespace pyc::reference {

// The one function of an object.
inline constexpr std::string_view kSymbol = "kernel";

// An interpreter from an object, which is Loop IR text.
Result<std::unique_ptr<const runtime::HostCode>> load_text(const std::string& object);
// The same as a loader.
const runtime::Loader& loader();

}  // namespace pyc::reference
