#pragma once

// What compiles and runs did, when, and on which thread. A compile that is given a TraceLog records
// its stages there and hands it to the models it makes, which record their runs. Any number of
// threads may write to one.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"

namespace pyc {

// A number for the calling thread, the same for as long as it lives.
int trace_thread();

// What one thread did for a step of a run.
struct TracePart {
  int thread = -1;  // none: the part was empty or never began
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// The same as it is written while the run is under way: in ticks.
struct PartTicks {
  int thread = -1;
  uint64_t start = 0;
  uint64_t end = 0;
};

// A stage of a compile, or a kernel that was made.
struct TraceSpan {
  std::string name;
  int thread = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// A node of the model as the user gave it.
struct TraceNode {
  std::string name;
  std::string ops;  // of the canonical graph, what it became: "sub exp reduce_sum"
};

struct TraceStep {
  std::string name;    // its group
  std::string kernel;  // the candidate that was chosen
};

struct TraceProgram {
  std::shared_ptr<const void> owner;  // keeps its address from being another's
  std::vector<TraceStep> steps;
  std::map<std::string, std::vector<TraceNode>>
      nodes;  // by group; none for a program that was kept
};

struct TraceRun {
  const void* program = nullptr;  // of TraceRecord::programs
  const void* lane = nullptr;     // whose memory it has
  int64_t lane_bytes = 0;
  int thread = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  size_t threads = 1;
  std::vector<TracePart> parts;  // `threads` for each step
};

// A run that is being recorded. Whoever began it fills it in and writes `end` last.
struct RunTicks {
  const void* program = nullptr;
  const void* lane = nullptr;
  int64_t lane_bytes = 0;
  int thread = 0;
  size_t threads = 1;
  std::span<PartTicks> parts;  // a thread's together, so that threads share no cache line
  uint64_t start = 0;
  std::atomic<uint64_t> end{0};  // 0: under way
};

struct TraceRecord {
  std::vector<TraceSpan> spans;
  std::map<const void*, TraceProgram> programs;
  std::vector<TraceRun> runs;
  int64_t runs_left_out = 0;
};

class TraceLog {
 public:
  // Of all runs together. From the first run on that has no room, runs are counted and not
  // recorded.
  static constexpr size_t kMostParts = size_t{1} << 20;
  static constexpr size_t kMostRuns = size_t{1} << 16;

  // By the calling thread, which did it from `start_ns` to now. Without memory nothing is recorded.
  void add_span(std::string name, int64_t start_ns) noexcept;
  // What is known of a program; the address is its name. The steps come before its first run: the
  // memory of runs is made with the first of them, so that no run waits for memory.
  void add_steps(std::shared_ptr<const void> program, std::vector<TraceStep> steps);
  void add_nodes(std::shared_ptr<const void> program,
                 std::map<std::string, std::vector<TraceNode>> nodes);
  // Where a run of so many parts is recorded; null: it is not. Allocates nothing and takes no lock.
  RunTicks* begin_run(size_t parts) noexcept;
  // From here on nothing is recorded.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // Runs that are under way are not in it.
  TraceRecord record() const;

 private:
  const TickMoment begun_ = tick_moment();
  std::atomic<bool> stopped_{false};
  std::atomic<size_t> runs_taken_{0};
  std::atomic<size_t> parts_taken_{0};
  std::atomic<int64_t> runs_left_out_{0};
  mutable std::mutex mutex_;  // guards what is below; runs find theirs without it
  std::unique_ptr<RunTicks[]> runs_;
  std::unique_ptr<PartTicks[]> parts_;
  TraceRecord record_;  // its spans and programs
};

}  // namespace pyc
