#pragma once

#include "driver/compile.h"
#include "open/shapes.h"
#include "pyc/compile_options.h"

struct pyc_compile_options {
  pyc::driver::CompileOptions values;
};

namespace pyc::capi {

// The caller's options; null asks for the defaults.
driver::CompileOptions to_options(const pyc_compile_options* given);
// The shapes they choose.
open::ShapeChoice to_shapes(const pyc_compile_options* given);

}  // namespace pyc::capi
