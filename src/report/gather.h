#pragma once

#include "driver/stages.h"
#include "report/data.h"

namespace pyc::report {

// The rows of a compile: both graphs laid out, groups, and the plan's memory.
CompileRows gather(const driver::Stages& stages);

}  // namespace pyc::report
