#pragma once

#include <string>

#include "base/status.h"
#include "driver/compile.h"

namespace pyc::tool {

// What every command that compiles takes.
struct Common {
  std::string model;
  driver::CompileOptions compile;
  bool json = false;
};

struct RunCommand {
  Common common;
  uint64_t seed = 0;
  int repeat = 1;
  bool explain = false;
};

Status run_model(const RunCommand& command);
Status explain_model(const Common& common);
Status dump_model(const Common& common, const std::string& stage);

// Reads and parses a model file.
Result<ir::Graph> load_model(const std::string& path);

// The process's exit code for a status: 0, or one number per class of error.
int exit_code(const Status& status);

}  // namespace pyc::tool
