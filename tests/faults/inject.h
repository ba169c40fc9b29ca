#pragma once

// Makes the system refuse calls of the library, one at a time. The library knows nothing of it:
// this program replaces operator new, and its link line (CMakeLists.txt) leads the C functions for
// memory, files, mappings and threads through inject.cpp.

#include <cstdint>
#include <vector>

namespace pyc::faults {

enum class Kind : uint8_t { kNew, kMalloc, kFile, kMap, kThread };
const char* kind_name(Kind kind);

// Counts calls from now on and refuses call number `refuse` (from 1; 0: none).
void arm(int64_t refuse);
struct Outcome {
  int64_t calls = 0;
  bool refused = false;
  Kind kind = Kind::kNew;  // of the refused call
};
Outcome disarm();

// Between these two the places calls come from are noted. The result is the numbers of calls to
// refuse: every one, or the first from each place (its ten innermost callers). Calls that LLVM
// makes are never among them: LLVM ends the process when memory is refused to it.
void begin_recording();
struct Recorded {
  int64_t calls = 0;
  int64_t in_llvm = 0;
  std::vector<int64_t> numbers;
  std::vector<uint64_t> places;  // of each of them
};
Recorded end_recording(bool every);

// From now on the system lets nobody make memory executable (EACCES), or lets everybody again.
void forbid_execution(bool forbid);

// What the library and everybody else in this process holds.
struct Held {
  int64_t blocks = 0;
  int64_t files = 0;
  int64_t maps = 0;
  bool operator==(const Held&) const = default;
};
Held held();

}  // namespace pyc::faults
