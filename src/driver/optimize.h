#pragma once

// The passes alone, from graph to graph: what `pyc opt` runs.

#include <span>
#include <string>
#include <vector>

#include "base/decision.h"
#include "base/status.h"
#include "ir/graph.h"

namespace pyc::driver {

// What the runs of one pass did together.
struct PassReport {
  std::string name;
  std::string summary;
  bool value_changing = false;
  int runs = 0;     // 0: left out
  int changed = 0;  // runs that changed the graph
  int64_t ns = 0;   // with verifying
};

struct PassesResult {
  ir::Graph graph;
  std::vector<PassReport> reports;  // in the order in which passes ran first
  DecisionLog log;
  // Asked for with `dump_changes`: "pass name, round 1" and the graph after it, for each run that
  // changed it.
  std::vector<std::pair<std::string, std::string>> dumps;
};

// Runs the named passes in the given order, or with no names the whole pipeline. Unknown names are
// refused with kUnknownOption and the nearest name.
Result<PassesResult> run_passes(ir::Graph graph, std::span<const std::string> names,
                                bool dump_changes = false);

// All passes in the order of the pipeline, nothing run.
std::vector<PassReport> list_passes();

}  // namespace pyc::driver
