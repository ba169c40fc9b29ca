#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "runtime/program.h"

namespace pyc::driver {

// The program with the parameters that it streams (runtime::streamed_parameters) in a mapped file:
// those that are in none yet are written to one without a name in the folder, so that their memory
// can go. The same program where there are no such. kIoError or kNotFound with what helps.
Result<std::shared_ptr<const runtime::Program>> with_streamed_in_file(
    std::shared_ptr<const runtime::Program> program, const std::string& folder);

}  // namespace pyc::driver
