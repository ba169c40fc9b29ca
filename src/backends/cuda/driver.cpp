#include "backends/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace pyc::cuda {
namespace {

// The name with its version: `libcuda.so` alone may be the stub that a toolkit links with.
constexpr const char* kDriverLibrary = "libcuda.so.1";

std::string loader_reason(const std::string& path) {
  const char* reason = dlerror();
  return reason == nullptr ? path : reason;
}

Code code_of_result(int result) {
  switch (result) {
    case kErrorOutOfMemory:
      return Code::kOutOfMemory;
    case kErrorInvalidImage:
    case kErrorNoBinaryForGpu:
    case kErrorInvalidPtx:
    case kErrorUnsupportedPtxVersion:
      return Code::kCompileFailed;
    case kErrorNotFound:
      return Code::kNotFound;
    case kErrorStubLibrary:
    case kErrorNoDevice:
    case kErrorInvalidDevice:
    case kErrorSystemNotReady:
    case kErrorSystemDriverMismatch:
    case kErrorCompatNotSupported:
      return Code::kUnsupported;
    default:
      return Code::kRuntimeFailed;
  }
}

// `dlsym` of a function; false when there is none.
template <class Function>
bool find_entry(void* library, const char* name, Function*& out) {
  out = reinterpret_cast<Function*>(dlsym(library, name));
  return out != nullptr;
}

}  // namespace

bool loses_context(int result) {
  switch (result) {
    case kErrorDeinitialized:
    case kErrorIllegalAddress:
    case kErrorLaunchTimeout:
    case kErrorAssert:
    case kErrorHardwareStackError:
    case kErrorIllegalInstruction:
    case kErrorMisalignedAddress:
    case kErrorInvalidAddressSpace:
    case kErrorInvalidPc:
    case kErrorLaunchFailed:
    case kErrorUnknown:
      return true;
    default:
      return false;
  }
}

Status Driver::status(int result, std::string_view call) const {
  if (result == kSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  if (api_.cuGetErrorName(result, &name) != kSuccess || name == nullptr) name = "unknown result";
  if (api_.cuGetErrorString(result, &text) != kSuccess || text == nullptr) text = "no text";
  const std::string stub =
      result == kErrorStubLibrary ? "; a toolkit's stub was loaded in place of the driver" : "";
  return {code_of_result(result), fmt::format("{}: {} ({}): {}{}", call, name, result, text, stub)};
}

Result<std::shared_ptr<const Driver>> Driver::load(const std::string& path) {
  const std::string file = path.empty() ? kDriverLibrary : path;
  dlerror();
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Status(Code::kUnsupported, fmt::format("no NVIDIA driver: {}", loader_reason(file)));
  }
  auto driver = std::make_shared<Driver>();
  std::string missing;
#define PYC_ENTRY(name, ...) \
  if (!find_entry(library, #name, driver->api_.name)) missing += " " #name;
  PYC_DRIVER_ENTRIES(PYC_ENTRY)
#undef PYC_ENTRY
  if (!missing.empty()) {
    dlclose(library);
    return Status(Code::kUnsupported,
                  fmt::format("the NVIDIA driver {} is too old: it lacks{}", file, missing));
  }
  PYC_DRIVER(*driver, cuInit, 0);
  PYC_DRIVER(*driver, cuDriverGetVersion, &driver->version_);
  return std::shared_ptr<const Driver>(std::move(driver));
}

}  // namespace pyc::cuda
