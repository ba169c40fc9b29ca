#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/offsets.h"

namespace pyc::plan {

// Per block, which others live at a step at which it does.
std::vector<std::vector<uint32_t>> blocks_together(std::span<const Block> blocks);

// Improves `best`, whose offsets the blocks have, by branch and bound down to the bound. Groups of
// blocks that no step joins are searched on their own, and only those that end above the bound.
void search_offsets(std::vector<Block>& blocks, int64_t lower_bound, int64_t work, Packing& best);

}  // namespace pyc::plan
