#pragma once

// What is known of each code besides its number: one table, from which names, cures and
// docs/errors.md come.

#include <string_view>

#include "base/status.h"

namespace pyc {

struct CodeInfo {
  std::string_view name;   // code_name
  std::string_view cause;  // what went wrong, without a full stop
  std::string_view cure;   // what to do, a sentence; "" for kOk
};

// The texts live for ever and end with a NUL. Numbers that are no code give "unknown" and "".
CodeInfo code_info(Code code);

inline constexpr int kCodeCount = static_cast<int>(Code::kInternal) + 1;

}  // namespace pyc
