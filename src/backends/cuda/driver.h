#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/cuda/driver_api.h"
#include "base/status.h"

namespace pyc::cuda {

// libcuda, loaded and initialised. Never unloaded: what it started may still be running.
class Driver {
 public:
  // Loads libcuda.so.1, or the library at `path`. kUnsupported with the true cause: no library, a
  // toolkit's stub, an entry point that is missing, no device.
  static Result<std::shared_ptr<const Driver>> load(const std::string& path = "");

  const DriverApi& api() const { return api_; }
  int version() const { return version_; }  // 13000 is 13.0

  // The result of a call as a status that names the call and the driver's reason.
  Status status(int result, std::string_view call) const;

 private:
  DriverApi api_;
  int version_ = 0;
};

// Whether a result means that the context, which the whole process shares, can no longer be used.
bool loses_context(int result);

}  // namespace pyc::cuda

// Returns early unless the driver's function succeeds: PYC_DRIVER(driver, cuMemFree_v2, address).
#define PYC_DRIVER(driver, function, ...) \
  PYC_TRY((driver).status((driver).api().function(__VA_ARGS__), #function))
