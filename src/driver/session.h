#pragma once

// The one thing that runs models. A model whose shapes are fixed and that is tensor code throughout
// is one program, compiled when the session is made (`whole`). Any other is run in stages
// (driver/stages.h), compiled when the shapes are there.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/decision.h"
#include "base/dyn_value.h"
#include "base/status.h"
#include "driver/breaks.h"
#include "driver/compile.h"
#include "driver/growing_log.h"
#include "ir/open_graph.h"
#include "runtime/model.h"

namespace pyc::driver {

// The whole of an open graph as one closed graph, when every input has a fixed shape and nothing
// in it depends on data. kUnsupported with what is in the way otherwise.
Result<ir::Graph> close_model(const ir::OpenGraph& graph);

// What of the graph breaks, as far as its declared shapes tell. Nodes without a rule are taken.
// Refuses with the code of a rule that the graph contradicts.
Result<BreakReport> foresee_breaks(const ir::OpenGraph& graph);

// Inputs or outputs of a program, as an open graph declares them.
std::vector<ir::OpenValue> declared(std::span<const runtime::IoSpec> specs);

struct SessionStats {
  int64_t runs = 0;
  int64_t failed_runs = 0;
  int64_t guard_misses = 0;  // of those: refused at entry
  int64_t segments_run = 0;
  int64_t segments_compiled = 0;
  int64_t host_calls = 0;
  int64_t fallbacks = 0;  // of those: of ops that become code where their inputs allow it
  int64_t contexts = 0;
  int64_t compile_ns = 0;
  runtime::CompileBreakdown compile = {};  // of the whole program
  bool cache_hit = false;
};

class Session {
 public:
  // Programs kept per stage; the one unused longest goes first. More than kStormLimit compiles of
  // one stage are logged as a storm.
  static constexpr size_t kMaxPrograms = 32;
  static constexpr int64_t kStormLimit = 64;

  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const ir::OpenGraph> graph,
                                                 CompileOptions options);
  static Result<std::unique_ptr<Session>> create(ir::Graph graph, CompileOptions options);
  // Of a program that was compiled ahead of time.
  static Result<std::unique_ptr<Session>> of(std::unique_ptr<runtime::Model> whole,
                                             std::string fingerprint);
  ~Session();

  // The program, for those that run it into memory of their own; null when the model runs in
  // stages.
  runtime::Model* whole() const;
  // What the model declares; shapes may be open.
  const std::vector<ir::OpenValue>& inputs() const;
  const std::vector<ir::OpenValue>& outputs() const;

  // Of the whole program's graph; "" when there is none.
  const std::string& fingerprint() const;

  // Any number of threads may call it at the same time. Outputs may share the memory of inputs.
  // kShapeMismatch names both inputs when they give one dim two sizes.
  Result<std::vector<DynValue>> run(std::span<const DynValue> inputs,
                                    runtime::RunStats* stats = nullptr);

  SessionStats stats() const;
  // Everything decided so far: compiles, breaks with their reasons, storms.
  const GrowingLog& log() const;
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

}  // namespace pyc::driver
