// Sums of what several readers send back to one value, as one node instead of many additions.
#pragma once

#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace pyc::autograd {

enum class Summand {
  kPlain,    // is added
  kProduct,  // aᵀ·g of so few rows that to add its elements takes longer than to copy a and g
  kPiece,    // zeros but for a range of one dim: what a slice sends
};

Summand summand(const ir::Graph& graph, ir::ValueId v);

// The sum of two summands or more of one kind that is not plain, in the order they were sent.
// Products become one over the rows of all. Pieces that do not overlap are put side by side and +0
// is added, which has the bits of adding all: a sum of −0 and the zeros of other pieces is +0.
Result<ir::ValueId> joined(ir::GraphBuilder& builder, const std::vector<ir::ValueId>& summands);

}  // namespace pyc::autograd
