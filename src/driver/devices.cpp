#include "driver/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "backends/cpu/backend.h"
#include "backends/cuda/backend.h"
#include "backends/null/null.h"
#include "backends/reference/reference.h"

namespace pyc::driver {
namespace {

const auto& backends_table() {
  static const auto table = std::to_array<std::unique_ptr<backends::Backend>>({
      backends::make_cpu_backend(),
      backends::make_cuda_backend(),
      backends::make_reference_backend(),
      backends::make_null_backend(),
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
