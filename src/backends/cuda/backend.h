#pragma once

#include <memory>

#include "backends/backend.h"

namespace pyc::backends {

// Code for NVIDIA GPUs: cubins, which cuda::loader() runs. Compiling needs NVRTC, and a GPU unless
// a target is named.
std::unique_ptr<Backend> make_cuda_backend();

}  // namespace pyc::backends
