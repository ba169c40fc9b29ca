#pragma once

#include "base/status.h"
#include "driver/compile_options.h"
#include "driver/tuning.h"

namespace pyc::tune {

// What the machine reaches with the options' device and threads: products in registers, bytes
// between memory and cores, and a step that has nothing to do. Takes at most about five seconds.
Result<driver::MachineProbe> probe_machine(const driver::CompileOptions& options);

}  // namespace pyc::tune
