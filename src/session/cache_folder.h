#pragma once

// The folder where programs and measured times are kept: a Store of artefacts (base/store.h), each
// under all that it was compiled from.

#include <string>

#include "driver/compile_options.h"

namespace pyc::session {

// The folder that PYC_CACHE_DIR names, or "": where programs are kept when the option cache_dir
// names none.
std::string default_cache_folder();

// That of these options; "": none.
std::string cache_folder(const driver::CompileOptions& options);

// Puts into the options what the tuner measured on this machine, as the folder of their programs
// has it; nothing where there is no folder, or the code is for another machine.
Status read_tuning(driver::CompileOptions& options);

}  // namespace pyc::session
