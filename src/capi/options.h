#pragma once

#include "driver/compile.h"
#include "driver/shapes.h"
#include "pyc/compiler_api.h"

namespace pyc::capi {

// The caller's options, checked; null asks for the defaults.
Result<driver::CompileOptions> to_options(const pyc_compile_options* given);
// The shapes they choose.
Result<driver::ShapeChoice> to_shapes(const pyc_compile_options* given);

}  // namespace pyc::capi
