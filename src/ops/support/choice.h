#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "ops/support/refuse.h"

namespace pyc::ops {

// An attribute that is one of a few words.
inline Status require_choice(std::string_view attr, std::string_view value,
                             std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return {};
  std::string words;
  for (std::string_view word : known) words += (words.empty() ? "" : ", ") + std::string(word);
  return refuse(Code::kInvalidArgument, attr, " must be one of ", std::string_view(words),
                ", found \"", value, "\"");
}

}  // namespace pyc::ops
