#include "pyc/cuda_backend.h"

#include <cstddef>
#include <mutex>
#include <set>
#include <string>

#include "capi/guard.h"
#include "driver/devices.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

// The same text for ever: callers keep the pointer.
const char* kept_text(std::string text) {
  static std::mutex mutex;
  static std::set<std::string> texts;
  const std::lock_guard lock(mutex);
  return texts.insert(std::move(text)).first->c_str();
}

}  // namespace

pyc_status pyc_cuda_get_info(pyc_cuda_info* info, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(info, "pyc_cuda_info", offsetof(pyc_cuda_info, found)));
    PYC_ASSIGN(const backends::Backend* backend, driver::find_backend("cuda"));
    const Status runs = backend->loader().available();
    pyc_cuda_info out{};
    out.available = runs.ok() ? 1 : 0;
    out.device_count = out.available;
    out.reason = kept_text(runs.message());
    out.found = kept_text(backend->found_here());
    write_struct(info, out);
    return {};
  });
}
