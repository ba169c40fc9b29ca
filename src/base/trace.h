#pragma once

// What compiles and runs did, when, and on which thread. A compile that is given a TraceLog records
// its stages there and hands it to the models it makes, which record their runs. Any number of
// threads may write to one.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
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
  int64_t passed_over = 0;       // of the same lane, since the last that was recorded
  std::vector<TracePart> parts;  // `threads` for each step
};

// A run that is being recorded. Whoever began it fills it in and writes `end` last.
struct RunTicks {
  const void* program = nullptr;
  const void* lane = nullptr;
  int64_t lane_bytes = 0;
  int thread = 0;
  size_t threads = 1;
  int64_t passed_over = 0;
  std::span<PartTicks> parts;  // a thread's together, so that threads share no cache line
  uint64_t start = 0;
  std::atomic<uint64_t> end{0};  // 0: under way
};

// Which runs of a lane are recorded. Of runs that are short beside what a record costs only some
// are, so that all records together cost no more than a small share of the time of all runs. The
// run that has the lane is the only one to write here.
struct alignas(64) TracePace {
  size_t parts = 0;              // of a run
  size_t threads = 1;            // that share them
  uint64_t worth = 0;            // ticks from which on every run is recorded
  std::atomic<int64_t> runs{0};  // that began
  int64_t next = 0;              // the number of the next one to record, or less
  int64_t last = -1;             // and of the last that was
  int64_t stride = 1;            // from one that is recorded to the next
};

struct TraceRecord {
  std::vector<TraceSpan> spans;
  std::map<const void*, TraceProgram> programs;
  std::vector<TraceRun> runs;
  int64_t runs_left_out = 0;     // there was no room
  int64_t runs_passed_over = 0;  // their records would have cost too much
};

class TraceLog {
 public:
  // Of all runs together. From the first run on that has no room, runs are counted and not
  // recorded.
  static constexpr size_t kMostParts = size_t{1} << 20;
  static constexpr size_t kMostRuns = size_t{1} << 16;
  // Of each lane; they are recorded whatever they cost.
  static constexpr int64_t kFirstRuns = 32;
  static constexpr int64_t kMostApart = 1000;

  // By the calling thread, which did it from `start_ns` to now. Without memory nothing is recorded.
  void add_span(std::string name, int64_t start_ns) noexcept;
  // What is known of a program; the address is its name. The steps come before its first run: the
  // memory of runs is made with the first of them, so that no run waits for memory.
  void add_steps(std::shared_ptr<const void> program, std::vector<TraceStep> steps);
  void add_nodes(std::shared_ptr<const void> program,
                 std::map<std::string, std::vector<TraceNode>> nodes);
  // The pace of a lane's runs, which lives as long as the trace. Each has so many steps, which so
  // many threads share.
  TracePace& add_lane(size_t steps, size_t threads);
  // Where a run is recorded; null: it is not. Allocates nothing and takes no lock.
  RunTicks* begin_run(TracePace& pace) noexcept {
    if (stopped()) return nullptr;
    const int64_t number = pace.runs.load(std::memory_order_relaxed);
    pace.runs.store(number + 1, std::memory_order_relaxed);
    if (number < pace.next && !every_run_.load(std::memory_order_relaxed)) return nullptr;
    return take_room(pace, number);
  }
  // The last that is written of a run.
  static void end_run(TracePace& pace, RunTicks& run, uint64_t end) noexcept;
  // Of runs that begin from here on none is passed over.
  void record_every_run() { every_run_.store(true, std::memory_order_relaxed); }
  // From here on nothing is recorded.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // Runs that are under way are not in it.
  TraceRecord record() const;

 private:
  RunTicks* take_room(TracePace& pace, int64_t number) noexcept;

  const TickMoment begun_ = tick_moment();
  std::atomic<bool> stopped_{false};
  std::atomic<bool> every_run_{false};
  std::atomic<size_t> runs_taken_{0};
  std::atomic<size_t> parts_taken_{0};
  std::atomic<int64_t> runs_left_out_{0};
  mutable std::mutex mutex_;  // guards what is below; runs find theirs without it
  std::unique_ptr<RunTicks[]> runs_;
  std::unique_ptr<PartTicks[]> parts_;
  TraceRecord record_;  // its spans and programs
  std::deque<TracePace> paces_;
};

}  // namespace pyc
