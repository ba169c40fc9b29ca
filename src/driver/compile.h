#pragma once

// From a graph to a model that runs: the only place that knows the order of the stages.

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "driver/compile_options.h"
#include "ir/graph.h"
#include "runtime/model.h"

namespace pyc::driver {

// What a compile produced, before it became a model.
struct Compiled {
  std::shared_ptr<const runtime::Program> program;
  DecisionLog log;
  runtime::MemoryReport memory;
  runtime::CompileBreakdown times = {};
};

// A graph from text IR over all of PyC's ops.
Result<ir::Graph> parse_model(std::string_view text);

// Refuses with the code and message of the stage that cannot go on.
Result<std::unique_ptr<runtime::Model>> compile(ir::Graph graph, const CompileOptions& options);

// The program for the machine options.target: its steps name functions in relocatable objects
// instead of pointing to them.
Result<Compiled> compile_ahead(ir::Graph graph, const CompileOptions& options);

// What the options ask of every run.
runtime::RunContract run_contract(const CompileOptions& options);

// The options' thread count, with one per core for 0.
int thread_count(const CompileOptions& options);

// The text of every stage of a compile, for `pyc dump` and docs/ARCHITECTURE.md.
// stage: graph, passes, groups, loop, plan, llvm, asm.
Result<std::string> dump(ir::Graph graph, const CompileOptions& options, std::string_view stage);

}  // namespace pyc::driver
