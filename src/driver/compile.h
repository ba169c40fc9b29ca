#pragma once

// From a graph to a program: the only place that knows the order of the stages.

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
  std::shared_ptr<const runtime::Engine> engine = {};  // of the program; none until it is loaded
  DecisionLog log;
  runtime::MemoryReport memory;
  runtime::CompileBreakdown times = {};
};

// A graph from text IR over all of PyC's ops.
Result<ir::Graph> parse_model(std::string_view text);

// The program for the machine options.target, not loaded; refuses with the code and message of the
// stage that cannot go on. For devices whose code is for any machine the target must be left out.
Result<Compiled> compile_program(ir::VerifiedGraph given, const CompileOptions& options);

// Loads the program's code into this process; `trace` may be null.
Status load(Compiled& compiled, TraceLog* trace = nullptr);

// The log with what these options chose in front: a program that was kept may have been made by a
// call that asked for what this one left to the default.
DecisionLog with_choices(DecisionLog log, const CompileOptions& options);

// What the options ask of every run.
runtime::RunContract run_contract(const CompileOptions& options);

// The options' thread count, with one per core for 0.
int thread_count(const CompileOptions& options);

// The text of every stage of a compile, for `pyc dump` and docs/ARCHITECTURE.md.
// stage: graph, passes, groups, loop, plan, llvm, asm.
Result<std::string> dump(ir::VerifiedGraph given, const CompileOptions& options,
                         std::string_view stage);

}  // namespace pyc::driver
