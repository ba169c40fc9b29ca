#include "driver/targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "driver/devices.h"

namespace pyc::driver {
namespace {

using backends::Capabilities;
using NameList = std::vector<std::string_view>;

NameList of_all_devices(NameList Capabilities::*list) {
  NameList names;
  for (const std::string_view device : device_names()) {
    const auto backend = find_backend(device);
    if (!backend.ok()) continue;
    const Capabilities can = (*backend)->capabilities();
    names.insert(names.end(), (can.*list).begin(), (can.*list).end());
  }
  return names;
}

}  // namespace

std::vector<std::string_view> all_targets() { return of_all_devices(&Capabilities::targets); }
std::vector<std::string_view> code_stages() { return of_all_devices(&Capabilities::stages); }

Status check_target(const backends::Backend& backend, std::string_view target) {
  const NameList known = backend.capabilities().targets;
  if (target.empty() || std::ranges::find(known, target) != known.end()) return {};
  if (known.empty()) {
    return {Code::kUnsupported,
            fmt::format("device '{}' makes code for any machine: leave out the target '{}'",
                        backend.name(), target)};
  }
  return {Code::kUnsupported,
          fmt::format("device '{}' makes no code for the target '{}'; it has: {}", backend.name(),
                      target, fmt::join(known, ", "))};
}

Status check_place(const runtime::Place& place) {
  PYC_TRY(check_runs(place.backend));
  PYC_ASSIGN(const backends::Backend* backend, find_backend(place.backend));
  return backend->loader().check_place(place);
}

}  // namespace pyc::driver
