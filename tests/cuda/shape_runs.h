#pragma once

// Graphs at the borders of what the forms do: lanes, blocks and super-blocks of a tree, rows of a
// warp and of a block, accesses of 16 bytes.

#include "cuda/case_runs.h"

namespace pyc::test {

Result<std::vector<CaseRun>> tree_runs();
Result<std::vector<CaseRun>> super_block_runs();
Result<std::vector<CaseRun>> row_runs();
Result<std::vector<CaseRun>> norm_runs();
Result<std::vector<CaseRun>> neighbour_runs();
// All of them.
Result<std::vector<CaseRun>> shape_runs();

}  // namespace pyc::test
