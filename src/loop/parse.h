#pragma once

#include <string_view>

#include "base/status.h"
#include "loop/loop.h"

namespace pyc::loop {

// Reads what print writes: print(parse_kernel(print(k))) == print(k). Buffers and variables
// have the names of the text. An error message begins with line:column. What the text means is
// checked by verify_kernel, not here.
Result<Kernel> parse_kernel(std::string_view text);

}  // namespace pyc::loop
