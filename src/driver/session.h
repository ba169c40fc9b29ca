#pragma once

// Runs open graphs: models whose shapes, or more, are only known when they run. A run goes through
// stages. Each stage closes what it can (specialize/), compiles that as one ordinary model, runs it
// through the gateway, then runs the host functions whose inputs are there. What a stage compiled
// is kept by the types (and, where they entered, contents) it was made for. A model with fixed
// shapes has one stage, compiled once.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/decision.h"
#include "base/dyn_value.h"
#include "base/status.h"
#include "driver/compile.h"
#include "ir/open_graph.h"

namespace pyc::driver {

// The whole of an open graph as one closed graph, when every input has a fixed shape and nothing
// in it depends on data. kUnsupported with what is in the way otherwise.
Result<ir::Graph> close_model(const ir::OpenGraph& graph);

struct SessionStats {
  int64_t runs = 0;
  int64_t segments_run = 0;
  int64_t segments_compiled = 0;
  int64_t host_calls = 0;
};

class Session {
 public:
  // Programs kept per stage; the one unused longest goes first. More than kStormLimit compiles of
  // one stage are logged as a storm.
  static constexpr size_t kMaxPrograms = 32;
  static constexpr int64_t kStormLimit = 64;

  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const ir::OpenGraph> graph,
                                                 CompileOptions options);
  ~Session();

  const ir::OpenGraph& graph() const;
  // Any number of threads may call it at the same time.
  Result<std::vector<DynValue>> run(std::span<const DynValue> inputs);
  SessionStats stats() const;
  // Everything decided so far: compiles, breaks with their reasons, storms.
  DecisionLog decisions() const;

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pyc::driver
