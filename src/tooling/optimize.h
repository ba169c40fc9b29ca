#pragma once

// The passes alone, from graph to graph: what `pyc opt` runs.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/decision.h"
#include "base/status.h"
#include "ir/graph.h"

namespace pyc::tooling {

// What the runs of one pass did together.
struct PassReport {
  std::string name;
  std::string summary;
  bool value_changing = false;
  bool required = false;  // it cannot be left out
  int runs = 0;           // 0: left out
  int changed = 0;        // runs that changed the graph
  int64_t ns = 0;         // with verifying
  size_t nodes_before = 0;
  size_t nodes_after = 0;                        // of the last run
  std::map<std::string, int64_t> rewrites = {};  // by rule
};

struct PassesResult {
  ir::Graph graph;
  std::vector<PassReport> reports;  // in the order in which passes ran first
  DecisionLog log;
  // Asked for with `dump_changes`: "pass name, round 1" and the graph after it, for each run that
  // changed it.
  std::vector<std::pair<std::string, std::string>> dumps;
};

// Runs the named passes, or with no names the whole pipeline. Unknown names are refused with
// kUnknownOption and the nearest name, and so are names out of the pipeline's order. `precision` is
// that of the compile options.
Result<PassesResult> run_passes(ir::Graph graph, std::span<const std::string> names,
                                bool dump_changes = false, DType precision = DType::kF32);

// All passes in the order of the pipeline, nothing run.
std::vector<PassReport> list_passes();

// What compiling does, by name, in its one order; "passes" is one of them.
std::span<const std::string_view> compile_stages();

}  // namespace pyc::tooling
