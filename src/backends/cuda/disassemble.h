#pragma once

#include <string>

#include "base/status.h"

namespace pyc::cuda {

// The instructions of a cubin, as NVIDIA's nvdisasm prints them: the one in the path, else the
// toolkit's. kUnsupported where there is none or it cannot read the bytes.
Result<std::string> disassembled(const std::string& cubin);

}  // namespace pyc::cuda
