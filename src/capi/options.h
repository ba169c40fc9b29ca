#pragma once

#include "driver/compile.h"
#include "pyc/compiler_api.h"

namespace pyc::capi {

// The caller's options, checked; null asks for the defaults.
Result<driver::CompileOptions> to_options(const pyc_compile_options* given);

}  // namespace pyc::capi
