#pragma once

// What a score computes from the indices of its query and key.

#include <string>
#include <vector>

#include "lower/types.h"

namespace pyc::cuda {

// The group of an attention whose score computes what it would read from constants that count (0,
// 1, 2, …, or from another number on): a conversion of the index. A difference of two such numbers
// is one of their indices, in which a thread's scores have much in common. No bit changes: integers
// to 2^24 are floats, and so are their differences.
lower::Group with_indices(const ir::Graph& graph, const lower::Group& group);

// A number that is linear in the indices of a score: those of a thread are its first one and
// constants, added as floats, which is exact. Scores of one diagonal have the same, and the
// compiler sees that.
struct LinearNumber {
  loop::ExprId of;
  std::string first;  // declares it for the thread's first row `own` and first key of block `j`
  std::string text;   // of the thread's element `n`
};
std::vector<LinearNumber> linear_numbers(const loop::Pool& pool, const lower::Attention& attention,
                                         loop::ExprId score);

}  // namespace pyc::cuda
