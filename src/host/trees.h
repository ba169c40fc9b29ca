#pragma once

// Decision trees that vote on targets.

#include <cstdint>
#include <vector>

#include "base/dyn_value.h"
#include "base/status.h"

namespace pyc::host {

struct Forest {
  enum class Mode : uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };
  struct Node {
    Mode mode = Mode::kLeaf;
    int64_t feature = 0;
    double split = 0.0;
    std::vector<double> members = {};  // kMember, ascending
    bool missing_is_true = false;      // for a NaN
    size_t if_true = 0;                // nodes
    size_t if_false = 0;
  };
  struct Vote {
    int64_t target = 0;
    double weight = 0.0;
  };
  std::vector<Node> nodes;
  std::vector<std::vector<Vote>> votes;  // by node: of a leaf
  std::vector<size_t> roots;
  int64_t targets = 0;
};

enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };

// Whether every index is in range. What is checked may be run on any input; a path that goes in a
// circle is refused then.
Status check_forest(const Forest& forest);

// For each row of `input` ([rows, features]) the votes of all trees joined per target, with
// `base` added (by target, or empty): rows x targets, row-major.
Result<std::vector<double>> run_forest(const Forest& forest, const DynValue& input,
                                       Aggregate aggregate, const std::vector<double>& base);

}  // namespace pyc::host
