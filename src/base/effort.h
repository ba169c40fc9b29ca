#pragma once

#include <cstdint>

namespace pyc {

// How much work a compile puts into a program. It is fixed beforehand and counted, never timed, so
// that the same program comes out on every machine; results have the same bits at every effort.
enum class Effort : uint8_t {
  kFastDev,   // compiles soonest: code as it comes, no search for offsets
  kBalanced,  // the default
  kMaxPerf,   // all that the code generator has, ten times the planner's searches
};

}  // namespace pyc
