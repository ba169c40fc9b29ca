#pragma once

#include <memory>

#include "backends/backend.h"

namespace pyc::backends {

// Compiles everything and runs nothing: for testing the compiler, and the folder to copy when you
// write a backend.
std::unique_ptr<Backend> make_null_backend();

}  // namespace pyc::backends
