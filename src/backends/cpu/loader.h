#pragma once

#include <string_view>

#include "base/status.h"
#include "base/target_info.h"
#include "runtime/engine.h"

namespace pyc::cpu {

// Machine code from ELF objects. No compiler is needed.
const runtime::Loader& loader();

// That the machine runs code made for the target: kUnsupported naming what it lacks.
Status check_target(std::string_view target, const TargetInfo& machine);

}  // namespace pyc::cpu
