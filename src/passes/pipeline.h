#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/decision.h"
#include "base/status.h"
#include "ir/graph.h"

namespace pyc::passes {

struct Pass {
  std::string_view name;
  bool value_changing;  // may change bits: listed, logged, tested by tolerance
  Result<bool> (*run)(ir::Graph& graph, const ir::OpSet& ops);
};

// All passes in the one fixed order.
std::span<const Pass> pipeline();

// Runs them: the only place that does. Each pass's result is verified; the log says for each
// whether it changed the graph. The result is the canonical graph.
Result<ir::VerifiedGraph> run_pipeline(ir::VerifiedGraph graph, const ir::OpSet& ops,
                                       DecisionLog* log);

}  // namespace pyc::passes
