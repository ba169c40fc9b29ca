#pragma once

#include <string>
#include <vector>

#include "driver/compile.h"
#include "open/shapes.h"
#include "pyc/compile_options.h"

struct pyc_compile_options {
  pyc::driver::CompileOptions values;
};

namespace pyc::capi {

// An option as the ABI shows it, with the memory that pyc_option_info points to.
struct ShownOption {
  std::string name;
  std::string help;
  std::string initial;
  std::string form;
  std::vector<std::string> words;
  std::vector<const char*> word_pointers;
  pyc_option_info info{};

  // Sets the pointers in `info`; nothing above it may change after.
  void point();
};

// The caller's options; null asks for the defaults.
driver::CompileOptions to_options(const pyc_compile_options* given);
// The shapes they choose.
open::ShapeChoice to_shapes(const pyc_compile_options* given);

}  // namespace pyc::capi
