#pragma once

// Where in a loop the comparisons of its variable with bounds are known: the interior of a padded
// window, the parts of a concatenation.

#include <utility>
#include <vector>

#include "loop/loop.h"

namespace pyc::cpu {

// Iterations [begin, end) of a loop, in all of which the comparisons of `known` have one value,
// whatever the loops inside do.
struct Zone {
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<std::pair<loop::ExprId, bool>> known;
  bool open_guards = false;  // some load's guard still depends on the loop variable
};

// Cuts the iterations 0 … extent-1 of a loop into zones; one zone if there is nothing to gain, or
// if there would be more than `most`.
std::vector<Zone> zones_of(const loop::Kernel& kernel, const loop::Loop& loop, size_t most);

}  // namespace pyc::cpu
