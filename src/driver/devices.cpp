#include "driver/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "backends/backend.h"

namespace pyc::backends {
#define PYC_BACKEND(folder) std::unique_ptr<Backend> make_##folder##_backend();
#include "driver/backends.inc"
#undef PYC_BACKEND
}  // namespace pyc::backends

namespace pyc::driver {
namespace {

const auto& backends_table() {
  static const auto table = std::to_array<std::unique_ptr<backends::Backend>>({
#define PYC_BACKEND(folder) backends::make_##folder##_backend(),
#include "driver/backends.inc"
#undef PYC_BACKEND
  });
  return table;
}

}  // namespace

Result<const backends::Backend*> find_backend(std::string_view device) {
  for (const auto& backend : backends_table()) {
    if (backend->name() == device) return backend.get();
  }
  return Status(Code::kUnknownOption, fmt::format("device '{}' is not known; known devices: {}",
                                                  device, fmt::join(device_names(), ", ")));
}

std::vector<std::string_view> device_names() {
  std::vector<std::string_view> names;
  for (const auto& backend : backends_table()) names.push_back(backend->name());
  return names;
}

Status check_runs(std::string_view device) {
  PYC_ASSIGN(const backends::Backend* backend, find_backend(device));
  return backend->loader().available();
}

std::span<const runtime::Loader* const> loaders() {
  static const auto table = [] {
    std::vector<const runtime::Loader*> all;
    for (const auto& backend : backends_table()) all.push_back(&backend->loader());
    return all;
  }();
  return table;
}

}  // namespace pyc::driver
