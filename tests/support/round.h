#pragma once

// What tests that take turns move on with: the number of commits, or what PYC_HOSTILE_ROUND says
// (scripts/hostile.py has the same).

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/sanitizers.h"

namespace pyc::test {

inline uint32_t round_of_tests() {
  if (const char* given = std::getenv("PYC_HOSTILE_ROUND")) {
    return static_cast<uint32_t>(std::strtoul(given, nullptr, 10));
  }
  const std::unique_ptr<FILE, int (*)(FILE*)> git(
      popen("git -C '" PYC_SOURCE_DIR "' rev-list --count HEAD 2>/dev/null", "r"), pclose);
  unsigned count = 0;
  if (git == nullptr || std::fscanf(git.get(), "%u", &count) != 1) return 0;
  return count;
}

// Whether the i-th of a list is to be looked at. Sanitizers do not see generated code and make all
// else take many times as long: with them it is every `turns`-th, moving on by one with each
// commit.
inline bool has_its_turn(size_t i, uint32_t turns) {
  static const uint32_t round = kSanitized ? round_of_tests() : 0;
  return !kSanitized || (i + round) % turns == 0;
}

}  // namespace pyc::test
