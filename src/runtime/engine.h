#pragma once

// Who runs programs. A Loader makes the code of a program callable where it is to run; the Engine
// it gives is shared by all models of that program; a Lane is the memory of one run at a time.
//
//   Program ── Loader::load ──► Engine ── make_lane ──► Lane ── run ──► outputs
//
// A backend brings a Loader; the driver hands all of them to whoever makes a model.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "base/trace.h"
#include "runtime/program.h"
#include "runtime/tensor_view.h"

namespace pyc::runtime {

struct RunStats {
  int64_t wall_ns = 0;       // from entry to return, guards included
  int64_t steps = 0;         // that ran to their end
  int64_t allocations = 0;   // blocks of memory made for this run; 0 on the hot path
  int64_t staged_views = 0;  // inputs and outputs that had to be copied: not plain (tensor_view.h)
  int64_t staged_bytes = 0;  // of their elements
  int64_t copied_bytes = 0;  // by Copy steps: of states that no kernel could write in place, of
                             // parameters that stay in a file, and of values that move out of a
                             // device and back
  int64_t recomputed_steps = 0;  // of `steps`: those that computed what an earlier one did
  // What passed between the host and the memory of a device: 0 where the engine is the host's.
  int64_t sent_bytes = 0;
  int64_t fetched_bytes = 0;
  // Of a run in stages: bytes of the values it made (base/value_meter.h) that were held at its end,
  // outputs and contents that entered programs, and at most.
  int64_t value_bytes = 0;
  int64_t value_peak_bytes = 0;
};

// Where the time of each step goes, if somebody asked.
struct StepTimes {
  Clock* clock = nullptr;
  std::span<int64_t> ns = {};  // one per step; empty: not asked
  // As many as there are steps for each thread; empty: not asked. Engines that are not of the
  // host's threads leave them as they are.
  std::span<PartTicks> parts = {};
};

// The memory of one run. One run at a time.
class Lane {
 public:
  virtual ~Lane() = default;
  // Runs all steps over views that fit the program and are plain (tensor_view.h). Counts the steps
  // that ran to their end. A failed run leaves the outputs void and the lane usable. Allocates
  // nothing.
  virtual Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                     RunStats& stats, StepTimes times) = 0;
  // What was allocated for it: bytes of arena and scratch, and blocks of any kind.
  virtual int64_t memory_bytes() const = 0;
  virtual int64_t blocks() const = 0;
};

// A program with its code bound and its parameters where the code reads them. Immutable.
class Engine {
 public:
  explicit Engine(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Program& program() const { return *program_; }
  // Into how many parts step i can be split, for reports.
  virtual int64_t parallel(size_t step) const = 0;
  // The device whose tensors its runs take where they lie, besides the host's; they must be
  // row-major.
  virtual std::optional<DeviceId> device() const { return std::nullopt; }
  // Memory for one more run at the same time; engine and threads outlive it. `states` is where the
  // program's states lie, which outlive it too; a program that has some has one lane at a time.
  virtual Result<std::unique_ptr<Lane>> make_lane(ThreadPool& threads,
                                                  std::span<std::byte* const> states) const = 0;

 private:
  std::shared_ptr<const Program> program_;
};

// One per backend, without state of its own: any number of threads may call it.
class Loader {
 public:
  virtual ~Loader() = default;
  // The name that places call it by.
  virtual std::string_view backend() const = 0;
  // That it has something to run programs on; else why not: kUnsupported.
  virtual Status available() const { return {}; }
  // That programs of the place run here, where one is available: kUnsupported with what is missing.
  virtual Status check_place(const Place&) const { return {}; }
  // Loads the code of the program's steps at that place. kUnsupported: the machine cannot run it;
  // kParseError: an object or a launch that this backend did not write.
  virtual Result<std::shared_ptr<const Engine>> load(std::shared_ptr<const Program> program,
                                                     uint32_t place) const = 0;
};

// The engine of a whole program: check_program, then the loader that its place names. kUnsupported
// when there is none of that name, or when steps run at several places.
Result<std::shared_ptr<const Engine>> load_engine(std::shared_ptr<const Program> program,
                                                  std::span<const Loader* const> loaders);

}  // namespace pyc::runtime
