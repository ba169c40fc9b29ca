#pragma once

// Where blocks of memory lie that live for a while: no two that live together may share bytes.

#include <cstdint>
#include <string_view>
#include <vector>

namespace pyc::plan {

// Lives from the start of one step to the end of another.
struct Block {
  int64_t size = 0;
  int first = 0;
  int last = 0;
  int64_t offset = -1;
};

// How much placing one may cost in all searches together; about as many looks at a block. It is no
// clock: the same blocks lie at the same offsets on every machine.
inline constexpr int64_t kOffsetWork = 1'000'000;

struct Packing {
  int64_t bytes = 0;          // the end of the highest block
  std::string_view found_by;  // a greedy order, or "branch_and_bound"
  bool optimal = false;       // no offsets need fewer bytes
  int64_t placements = 0;     // that the search tried
};

// Sets every block's offset. `lower_bound` is a number of bytes that some step needs. Tries a list
// of greedy orders and takes the best, the first of equals; where that is above the bound, branch
// and bound looks for less, for at most `work`, and may prove that there is none.
Packing pack(std::vector<Block>& blocks, int64_t lower_bound, int64_t work = kOffsetWork);

}  // namespace pyc::plan
