#pragma once

#include <memory>

#include "backends/backend.h"

namespace pyc::backends {

// Loop IR → LLVM → machine code of this CPU.
std::unique_ptr<Backend> make_cpu_backend();

}  // namespace pyc::backends
