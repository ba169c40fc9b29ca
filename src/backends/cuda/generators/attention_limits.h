#pragma once

// Which keys a query may attend to, as far as the score's Loop IR says it by comparisons of
// indices: causal attention, windows, the end of the keys.

#include <cstdint>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "lower/types.h"

namespace pyc::cuda {

// A score is −inf unless constant + query·(its query) + block·(its block) + key·(its key in the
// block) >= 0.
struct KeyLimit {
  int64_t constant = 0;
  int64_t query = 0;
  int64_t block = 0;
  int64_t key = 0;
};

struct KeyLimits {
  std::vector<KeyLimit> all;
  // The score where all of them hold; the score itself where that would leave out a condition of
  // another kind.
  loop::ExprId within = loop::kNone;
  // The score behind all choices between it and −inf.
  loop::ExprId live = loop::kNone;
};

// Of `score`, an expression of the pool.
KeyLimits key_limits(const loop::Pool& pool, const lower::Attention& attention, loop::ExprId score);

// Statements that move `begin` and `end` (i32) past blocks of keys in which no query from `low` to
// `high` (texts) has a score above −inf. What such a block adds to a row is nothing, bit for bit.
std::string live_blocks(const KeyLimits& limits, const lower::Attention& attention,
                        const std::string& low, const std::string& high);
// Whether all limits hold for these queries in all of block `j` (texts).
std::string holds_in_block(const KeyLimits& limits, const lower::Attention& attention,
                           const std::string& low, const std::string& high, const std::string& j);

}  // namespace pyc::cuda
