#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/decision.h"
#include "base/status.h"
#include "ir/graph.h"
#include "passes/passes.h"

namespace pyc::passes {

struct Pass {
  std::string_view name;
  std::string_view summary;  // one line
  // May change bits: listed in docs/NUMERICS.md, logged, tested by tolerance. All others keep every
  // bit of every output.
  bool value_changing = false;
  bool required = false;  // later stages need what it does: it cannot be turned off
  bool repeated = false;  // neighbours marked so run in turn until none of them changes anything
  Result<bool> (*run)(ir::Graph& graph, const PassContext& context) = nullptr;
};

// All passes in the one fixed order.
std::span<const Pass> pipeline();
// kUnknownOption, with the nearest name, unless there is such a pass.
Result<const Pass*> find_pass(std::string_view name);

// What one run of a pass did.
struct PassRun {
  const Pass& pass;
  int round;  // 1, 2, … of a repeated pass
  bool changed;
  int64_t ns;  // with verifying
  size_t nodes_before;
  const Rewrites& rewrites;  // by rule
  const ir::Graph& after;
};

struct PassOptions {
  std::vector<std::string> off = {};  // names of passes to leave out
  DType precision = DType::kF32;      // see PassContext
  bool join_products = true;          // likewise
  // What folds constants, where several runs of the passes with one op set share it; null: made for
  // one run.
  eval::Evaluators* evaluators = nullptr;
  // Called after every run of a pass: for timing, statistics and dumps of what changed. All of what
  // a pass leaves is verified before.
  std::function<void(const PassRun&)> observer = {};
};

// For PassOptions::evaluators.
std::shared_ptr<eval::Evaluators> make_evaluators();

// Runs them: the only place that does. The structure of what each pass leaves is checked before the
// next one walks over it, and the result is verified as a whole; what is wrong with it names the
// pass. The log says for each whether it changed the graph. The result is the canonical graph.
// Refuses with kUnknownOption when options.off has a name that no pass has or one that is required.
Result<ir::VerifiedGraph> run_pipeline(ir::VerifiedGraph graph, const ir::OpSet& ops,
                                       const PassOptions& options, DecisionLog* log);

// Runs the passes with the given names, each once: for tests and `pyc opt`. They must stand in the
// order of the pipeline; those that run in turn there may stand in any. kUnknownOption otherwise.
Result<ir::VerifiedGraph> run_passes(ir::VerifiedGraph graph, const ir::OpSet& ops,
                                     std::span<const std::string> names, const PassOptions& options,
                                     DecisionLog* log);

}  // namespace pyc::passes
