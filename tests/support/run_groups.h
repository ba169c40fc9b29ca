#pragma once

// A lowered graph run group by group through the interpreter, without a plan or a backend: for
// tests that choose how a graph is lowered.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "lower/lower.h"

namespace pyc::test {

// The graph after all passes.
ir::VerifiedGraph canonical(const ir::Graph& graph);

// The outputs of all groups run one after the other, or the message of the check that failed.
struct Outcome {
  std::vector<std::vector<std::byte>> outputs;
  std::string fault;
  bool operator==(const Outcome&) const = default;
};

Outcome run_groups(const lower::LoweredGraph& lowered,
                   const std::vector<std::vector<std::byte>>& inputs);
// A graph that cannot be lowered is a failure of the test.
Outcome outcome_of(const ir::VerifiedGraph& graph,
                   const std::vector<std::vector<std::byte>>& inputs,
                   const lower::LowerOptions& options);

// Keeps a value in `one_of` apart, at random; the same for the same seed.
std::function<bool(const ir::Graph&, ir::ValueId)> any_groups(uint32_t seed, uint32_t one_of);

}  // namespace pyc::test
