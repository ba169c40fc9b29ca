#pragma once

// Runs an open graph stage by stage. Each stage closes what it can (specialize/), compiles that as
// one ordinary model, runs it through the gateway, then runs the host functions whose inputs are
// there. What a stage compiled is kept by the types (and, where they entered, contents) it was made
// for.

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/dyn_value.h"
#include "driver/breaks.h"
#include "driver/compile.h"
#include "driver/growing_log.h"
#include "ir/open_graph.h"
#include "runtime/model.h"
#include "specialize/segment.h"

namespace pyc::driver {

class Stages {
 public:
  struct Stats {
    int64_t segments_run = 0;
    int64_t segments_compiled = 0;
    int64_t host_calls = 0;
    int64_t fallbacks = 0;  // of those: of ops that become code where their inputs allow it
    int64_t compile_ns = 0;
    int64_t made = 0;  // how often something new was closed, compiled or not
  };

  // `graph` and `log` outlive this.
  Stages(const ir::OpenGraph& graph, CompileOptions options, GrowingLog& log);
  ~Stages();

  // Any number of threads may call it at the same time. Inputs fit what the graph declares.
  Result<std::vector<DynValue>> run(std::vector<DynValue> inputs, runtime::RunStats& measured);

  Stats stats() const;
  // Of the graph itself, as found by the runs so far.
  Breaks breaks() const;
  // The sum over all programs that are kept.
  runtime::MemoryReport memory() const;

 private:
  struct Entry;
  struct Stage;
  struct Run;

  Result<std::vector<DynValue>> run_graph(const ir::OpenGraph& g, std::vector<DynValue> inputs,
                                          std::span<const DynValue> captured, Run run);
  Result<std::shared_ptr<Entry>> find_entry(Stage& stage, const specialize::State& state);
  Result<std::shared_ptr<Entry>> make_entry(Stage& stage, const specialize::State& state);
  void note_breaks(const specialize::State& state, const specialize::Segment& segment);
  Status run_segment(const Entry& entry, specialize::State& state, Run& run);
  Status run_host_node(uint32_t n, specialize::State& state, Run& run);
  Result<bool> run_host_nodes(const Entry& entry, specialize::State& state, Run& run);
  Stage& root_of(const ir::OpenGraph& g);
  const ir::OpenGraph& graph_of(const ir::OpenNode& node);

  const ir::OpenGraph& graph_;
  const CompileOptions options_;
  GrowingLog& log_;
  mutable std::mutex mutex_;  // guards everything below
  std::map<const ir::OpenGraph*, std::unique_ptr<Stage>> roots_;
  std::map<const ir::OpenNode*, std::unique_ptr<ir::OpenGraph>> alone_;  // nodes as graphs
  Stats stats_;
  Breaks breaks_;
};

// That the graph cannot go on, with the first node that waits.
Status stuck(const ir::OpenGraph& graph, const specialize::Segment& segment);

}  // namespace pyc::driver
