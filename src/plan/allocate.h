#pragma once

#include <string_view>

#include "plan/types.h"

namespace pyc::plan {

struct Placement {
  int64_t arena_bytes = 0;
  std::string_view strategy;  // what gave it
  bool optimal = false;       // no offsets have a smaller arena in this order of steps
};

// Sets the offset of every instance in the place's arena from the uses; what is written in place
// gets the offset of what it is written over. With reuse offsets.h packs them; without, every
// instance gets memory of its own. Lifetimes are taken in the order of the list: the steps that use
// the arena are on one queue. `work` is what packing may cost.
Placement place_instances(ExecutionPlan& plan, uint32_t place, bool reuse, int64_t work);

}  // namespace pyc::plan
