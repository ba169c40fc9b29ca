#pragma once

// Text of an attention of halves on Hopper's matrix unit, in the order `sm90` of docs/NUMERICS.md.
//
// A block of threads takes 64 queries for each 128 of its threads (a group) through the blocks of
// keys. Keys and values pass through stages in shared memory, which all groups read; a group that
// is through with one says so, and nobody else waits. One group copies for itself, unless it has
// the multiprocessor to itself; for several another one does nothing else, with most of its
// registers left to them. Scores stay in the registers the unit leaves them in: the 64 lanes of a
// row's sum are additions of one thread, then of its four neighbours. As weights they are the
// unit's operand for the values.
//
// Three groups in turns have tiles of 64 queries each, one after the other through all heads. Where
// the three are of two heads, stages of both come in turn, and a group passes over the other's.

#include <cstdint>
#include <string>

#include "backends/cuda/kernel_text.h"
#include "lower/types.h"

namespace pyc::cuda {

struct AttentionCut {
  int64_t groups = 1;  // of 64 queries in a block of threads
  int64_t turns = 1;   // tiles of so many queries that it takes one after the other
  bool apart = false;  // another group copies, for one as well

  int64_t rows() const { return 64 * groups; }
};
// How many blocks of threads a multiprocessor has room for; 0: none, there is no such text.
int64_t attention_halves_resident(const lower::Group& group, const AttentionCut& cut);

// Whether queries attend to keys up to a limit (causal attention, a window).
bool attention_halves_limited(const lower::Group& group);

KernelText attention_halves_text(const lower::Group& group, const AttentionCut& cut,
                                 const std::string& symbol);

}  // namespace pyc::cuda
