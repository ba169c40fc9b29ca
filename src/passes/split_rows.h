#pragma once

// Rows of products in parts, for less memory.

#include "ir/graph.h"

namespace pyc::passes {

// A product by constant weights, what is made of it element by element and the products behind it
// work on rows that never meet. Where the widest value between the first input and the last result
// is much larger than both, the rows go through all of it a part after the other, so that only a
// part of the widest value is there at a time: the input is sliced, the results are concatenated.
// Only chains whose widest value is more than half of the widest of all. Every bit stays. The graph
// itself where there is none. Takes a canonical graph and gives one.
Result<ir::VerifiedGraph> split_rows(const ir::VerifiedGraph& canonical, const ir::OpSet& ops);

}  // namespace pyc::passes
