#include "pyc/cuda_backend.h"

#include "capi/guard.h"
#include "driver/devices.h"

using namespace pyc;
using namespace pyc::capi;

pyc_status pyc_cuda_get_info(pyc_cuda_info* info, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(info, "pyc_cuda_info", sizeof(pyc_cuda_info)));
    pyc_cuda_info out{};
    const bool known = driver::find_backend("cuda").ok();
    out.available = known ? 1 : 0;
    out.reason = known ? "" : "this version of PyC has no CUDA backend";
    write_struct(info, out);
    return {};
  });
}
