#pragma once

// Which values of a chain are not kept over its most crowded step, by dynamic programming.

#include <cstdint>
#include <span>
#include <vector>

namespace pyc::plan {

// Values in the order in which they are made; each is made from the one before it.
struct ChainValue {
  int64_t bytes = 0;  // that its absence frees at the crowded step, above 0
  double ns = 0;      // what making it again costs once the one before it is there
};

// The cheapest values to make again that free at least `need` bytes. Neighbours that are both not
// kept are made again together, so that no such run and what is kept before it may have more than
// `limit` bytes. Exact as long as no more than kChainStates partial choices are worth keeping; then
// those that free about as much as a cheaper one go. Empty when nothing does.
inline constexpr size_t kChainStates = 512;
std::vector<bool> cheapest_of_chain(std::span<const ChainValue> values, int64_t need,
                                    int64_t limit);

}  // namespace pyc::plan
