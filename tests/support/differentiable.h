#pragma once

// Random graphs of 3 to 12 ops that can be differentiated, in f64.

#include "support/directional.h"

namespace pyc::test {

struct RandomCounts {
  int agreed = 0;
  int unfit = 0;
  int compared = 0;  // reference and CPU, every `compare_every`th
  std::string fault;
};
// Draws from `first_seed` on until `wanted` graphs agreed, or one does not.
RandomCounts check_random_graphs(uint64_t first_seed, int wanted, int compare_every);

}  // namespace pyc::test
