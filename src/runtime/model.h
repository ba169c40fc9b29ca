#pragma once

// The gateway: the one way to run anything. It guards what the caller hands in, has a lane of the
// program's engine run it, and counts what happened. It knows no device.

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/buffer_class.h"
#include "base/clock.h"
#include "base/decision.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "base/trace.h"
#include "runtime/engine.h"
#include "runtime/program.h"
#include "runtime/states.h"
#include "runtime/tensor_view.h"

namespace pyc::runtime {

struct MemoryReport {
  std::array<int64_t, kBufferClasses> class_bytes{};
  int64_t arena_bytes = 0;           // temporaries + workspace after reuse, planned
  int64_t scratch_bytes = 0;         // all threads together
  int64_t peak_bytes = 0;            // everything: inputs, outputs, parameters, states, arena,
                                     // scratch
  int64_t measured_arena_bytes = 0;  // what the allocator handed out for one run (arena + scratch)
  int64_t measured_state_bytes = 0;  // … and for the states
  // Held for views that are not plain, of all runs at a time; none until such a view comes. Beside
  // the peak, which is planned before any view is seen.
  int64_t staging_bytes = 0;
};

// Where the time of a compile went; all zero when the compile cache had the program.
struct CompileBreakdown {
  int64_t passes_ns = 0;
  int64_t lower_ns = 0;
  int64_t select_ns = 0;
  int64_t plan_ns = 0;
  int64_t code_ns = 0;      // generating and loading machine code, packing weights
  int64_t assemble_ns = 0;  // the program and its parameters
  int64_t kernels = 0;      // asked for
  int64_t distinct_kernels = 0;
  int64_t generated_kernels = 0;  // of those: not shared with another program
  int64_t slowest_kernel_ns = 0;

  // Of several compiles together.
  CompileBreakdown& operator+=(const CompileBreakdown& other);
};

struct ModelStats {
  int64_t runs = 0;          // calls of run and profile, whatever came of them
  int64_t failed_runs = 0;   // of those: the ones that did not return ok
  int64_t guard_misses = 0;  // of those: the ones refused at entry
  int64_t contexts = 0;      // lanes made: one per concurrent run at the peak
  int64_t compile_ns = 0;
  bool cache_hit = false;
  CompileBreakdown compile = {};
};

// What a model's runs must keep, besides its plan.
struct RunContract {
  bool strict_views = false;  // views that are not plain are refused
  int64_t memory_budget = 0;  // bytes for the peak and staging of one run; 0: no limit
  // Where runs are recorded; null: nowhere.
  std::shared_ptr<TraceLog> trace = {};
};

class Model {
 public:
  // Refusals that refusals() keeps; older ones are dropped.
  static constexpr size_t kMaxRefusals = 64;

  // `log` is the compile's decision log; `memory` the plan's account (measured_* are filled here).
  // Makes the states, zeros, and the memory of the first run. kInternal when what they take is not
  // what `memory` says in the class state, arena_bytes and scratch_bytes. `clock` is what times are
  // measured with (null: the system's); it is read from every thread that runs.
  static Result<std::unique_ptr<Model>> create(std::shared_ptr<const Engine> engine,
                                               std::shared_ptr<ThreadPool> pool, DecisionLog log,
                                               MemoryReport memory,
                                               std::shared_ptr<Clock> clock = nullptr,
                                               RunContract contract = {});
  ~Model();

  const std::vector<IoSpec>& inputs() const;
  const std::vector<IoSpec>& outputs() const;

  // What it keeps between runs (states.h); what a run does with it is part of the run.
  const std::vector<StateSpec>& state_specs() const;
  States& states();

  // Runs once. Any number of threads may call it at the same time, unless it has states. Views that
  // are not plain are copied (Staging) unless the contract is strict. The bytes from an output's
  // first to its last element overlap no other view's. A refusal leaves the model usable:
  // kInvalidArgument (wrong count), kNullPointer, kDtypeMismatch, kRankMismatch, kShapeMismatch,
  // kUnsupported (memory that is neither the host's nor its engine's), kSizeMismatch (elements
  // outside of the memory), kInvalidArgument (an output that overlaps itself or others),
  // kMisaligned and kInvalidArgument (strict views; states that are void or in use),
  // kBudgetExceeded (staging), kRuntimeFailed (a kernel's check failed; the message names the
  // node), kOutOfMemory (no memory for one more run at the same time), kInternal (a kernel is
  // wrong). Only the last three touch outputs, which are then void, as are the states that the run
  // may have written. Never throws.
  // `stats` is filled in any case.
  Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
             RunStats* stats = nullptr);

  const DecisionLog& decisions() const;
  // One decision per run that was refused or failed, oldest first, with the code's name as reason
  // and the message as detail.
  DecisionLog refusals() const;
  MemoryReport memory() const;
  ModelStats stats() const;
  // Before the first call of stats().
  void set_compile_stats(int64_t compile_ns, bool cache_hit, const CompileBreakdown& parts = {});
  // Nanoseconds each step took in one extra run, for reports.
  Result<std::vector<int64_t>> profile(std::span<const TensorView> inputs,
                                       std::span<const TensorView> outputs);
  const Program& program() const;
  const Engine& engine() const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pyc::runtime
