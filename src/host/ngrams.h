#pragma once

// Counting n-grams of a fixed pool in rows of tokens.

#include <string>
#include <vector>

#include "base/dyn_value.h"
#include "host/elements.h"

namespace pyc::host {

enum class NgramMode : uint8_t { kTf, kIdf, kTfIdf };

struct NgramSpec {
  int64_t shortest = 1;
  int64_t longest = 1;
  int64_t most_skips = 0;  // tokens left out between two of an n-gram
  NgramMode mode = NgramMode::kTf;
  // All 1-grams one after the other, then all 2-grams …; starts[n - 1] is where n-grams begin. One
  // of the pools is empty.
  std::vector<std::string> pool_strings;
  Ints pool_ints;
  Ints starts;
  Ints places;                  // by n-gram of the pool: its column in the output
  std::vector<double> weights;  // by n-gram of the pool, or empty: 1
};
// tokens [C] or [N, C] to f32 [columns] or [N, columns].
Result<DynValue> count_ngrams(const DynValue& tokens, const NgramSpec& spec);

}  // namespace pyc::host
