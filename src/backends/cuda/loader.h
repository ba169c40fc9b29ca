#pragma once

#include "base/status.h"
#include "runtime/engine.h"

namespace pyc::cuda {

// Cubins on the GPU of this machine. No compiler is needed.
const runtime::Loader& loader();

// kParseError unless the bytes are an ELF file all of whose parts lie inside of it: the driver is
// given no size.
Status check_image(const std::string& image);

}  // namespace pyc::cuda
