#pragma once

#include <memory>

#include "backends/backend.h"

namespace pyc::backends {

// Interprets the generic kernel of every group, plainly and slowly: the oracle that other backends
// are compared with.
std::unique_ptr<Backend> make_reference_backend();

}  // namespace pyc::backends
