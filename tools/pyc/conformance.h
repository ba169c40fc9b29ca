#pragma once

#include <string>

#include "driver/conformance.h"

namespace pyc::tool {

struct ConformanceCommand {
  std::string folder;
  driver::CompileOptions compile;
  driver::Tolerance tolerance;
  std::string filter;    // only cases whose path contains it
  int jobs = 2;          // cases at a time
  int time_limit = 120;  // seconds per case
  bool json = false;
};

// Runs every case below the folder, each in a process of its own. Exit code 0 only if none failed.
int run_conformance(const ConformanceCommand& command);

}  // namespace pyc::tool
