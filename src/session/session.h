#pragma once

// The one thing that runs models. A model whose shapes are fixed and that is tensor code throughout
// is one program, compiled when the session is made (`whole`). Any other is run by the
// executor (exec/executor.h), compiled when the shapes are there.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/decision.h"
#include "base/dyn_value.h"
#include "base/status.h"
#include "driver/compile.h"
#include "exec/growing_log.h"
#include "open/open_graph.h"
#include "runtime/model.h"
#include "session/breaks.h"

namespace pyc::session {

// The whole of an open graph as one closed graph, when every input has a fixed shape and nothing
// in it depends on data. kUnsupported with what is in the way otherwise.
Result<ir::Graph> close_model(const open::OpenGraph& graph);

// The limits and means that these options give an executor.
// any_size: programs for many sizes are to be expected; they share code.
exec::ExecutorOptions executor_options(const driver::CompileOptions& options,
                                       bool any_size = false);

// What of the graph breaks, as far as its declared shapes tell. Nodes without a rule are taken.
// Refuses with the code of a rule that the graph contradicts.
Result<BreakReport> foresee_breaks(const open::OpenGraph& graph);

// Inputs or outputs of a program, as an open graph declares them.
std::vector<open::OpenValue> declared(std::span<const runtime::IoSpec> specs);

struct SessionStats {
  int64_t runs = 0;
  int64_t failed_runs = 0;
  int64_t guard_misses = 0;  // of those: refused at entry
  int64_t segments_run = 0;
  int64_t segments_compiled = 0;
  int64_t generated_kernels = 0;  // of their kernels: those that code was generated for
  int64_t host_calls = 0;
  int64_t fallbacks = 0;  // of those: of ops that become code where their inputs allow it
  int64_t contexts = 0;
  int64_t compile_ns = 0;
  int64_t run_ns = 0;                      // of an open model's programs
  runtime::CompileBreakdown compile = {};  // the sum over all programs
  bool cache_hit = false;
};

// The types of a graph's inputs as tensors without content; kUnsupported naming one whose shape is
// not fixed.
Result<std::vector<DynValue>> input_types(const open::OpenGraph& graph);

// The programs that an open model is made of with these shapes, as far as types tell
// (exec::Executor::foresee), as text. Inputs must have fixed shapes.
Result<std::string> segments_text(const open::OpenGraph& graph,
                                  const driver::CompileOptions& options);

class Session {
 public:
  // `code` makes the executor's programs; empty: `compile` does.
  using CodeSource = exec::ExecutorOptions::Compile;
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const open::OpenGraph> graph,
                                                 driver::CompileOptions options,
                                                 CodeSource code = {});
  static Result<std::unique_ptr<Session>> create(ir::Graph graph, driver::CompileOptions options);
  // Of a program that was compiled ahead of time.
  static Result<std::unique_ptr<Session>> of(std::unique_ptr<runtime::Model> whole,
                                             std::string fingerprint);
  ~Session();

  // The program; null when the executor runs the model.
  runtime::Model* whole() const;
  // Runs the program, or the one that takes its place (option rails), into the caller's memory;
  // there is a whole(). As runtime::Model::run.
  Status run_whole(std::span<const runtime::TensorView> inputs,
                   std::span<const runtime::TensorView> outputs, runtime::RunStats* stats);
  // What the model declares; shapes may be open.
  const std::vector<open::OpenValue>& inputs() const;
  const std::vector<open::OpenValue>& outputs() const;

  // Of the whole program's graph; "" when there is none.
  const std::string& fingerprint() const;

  // Any number of threads may call it at the same time. Outputs may share the memory of inputs.
  // kShapeMismatch names both inputs when they give one dim two sizes.
  Result<std::vector<DynValue>> run(std::span<const DynValue> inputs,
                                    runtime::RunStats* stats = nullptr);

  // Compiles ahead of the runs with inputs of these types, tensors without content: all that types
  // tell. Returns whether runs will find everything; what is missing is compiled when it is met.
  Result<bool> foresee(std::span<const DynValue> types);

  SessionStats stats() const;
  // Everything decided so far: compiles, breaks with their reasons, storms.
  // Where it runs: the device that was asked for, or the one that took its place.
  std::string device() const;
  const exec::GrowingLog& log() const;
  DecisionLog decisions() const { return log().copy(); }
  // As runtime::Model keeps them.
  DecisionLog refusals() const;
  // Of the runs so far; before the first, as far as the declared shapes tell.
  BreakReport breaks() const;
  // Of the whole program, or the sum over all that are kept.
  runtime::MemoryReport memory() const;

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pyc::session
