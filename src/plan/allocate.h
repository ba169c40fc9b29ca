#pragma once

#include <string_view>

#include "plan/types.h"

namespace pyc::plan {

struct Placement {
  int64_t arena_bytes = 0;
  std::string_view strategy;  // what gave it
};

// Sets the offset of every arena buffer (the others get -1) from the lifetimes. With reuse it tries
// a fixed list of greedy strategies and keeps the smallest arena, the first of equals; without,
// every buffer gets memory of its own.
Placement place_buffers(ExecutionPlan& plan, bool reuse);

}  // namespace pyc::plan
