#pragma once

#include <cstdio>
#include <optional>
#include <string>

namespace pyc::test {

// What a command prints; nothing if it fails.
inline std::optional<std::string> printed_by(const std::string& command) {
  FILE* const pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string out;
  char piece[4096];
  for (size_t n = 0; (n = fread(piece, 1, sizeof(piece), pipe)) > 0;) out.append(piece, n);
  return pclose(pipe) == 0 ? std::optional(out) : std::nullopt;
}

}  // namespace pyc::test
