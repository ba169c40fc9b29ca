#include "base/trace.h"

#include <algorithm>
#include <new>
#include <utility>

namespace pyc {
namespace {

// What records may cost of the time of runs: less than the 2 % that are promised.
constexpr double kMostShare = 0.015;

// The time of some rounds of work, each ended by a stamp if `stamped`; the least of several tries.
int64_t rounds_ns(bool stamped, std::span<PartTicks> parts) {
  constexpr int kTries = 7;
  constexpr int kWork = 24;  // multiplications, one after another: as long as a short kernel
  int64_t least = INT64_MAX;
  std::atomic<uint64_t> result{1};  // so that the work is done
  for (int i = 0; i < kTries; ++i) {
    const int64_t start = now_ns();
    uint64_t begun = 0;
    uint64_t value = result.load(std::memory_order_relaxed);
    for (PartTicks& part : parts) {
      for (int k = 0; k < kWork; ++k) value = value * 6364136223846793005U + 1442695040888963407U;
      if (!stamped) continue;
      const uint64_t now = ticks();
      part = {0, begun, now};
      begun = now;
    }
    result.store(value, std::memory_order_relaxed);
    least = std::min(least, now_ns() - start);
  }
  return least;
}

// What it costs here to end a step with a stamp. Some processors hide it behind the work, in some
// virtual machines it takes longer than the shortest kernels: it is measured, beside work.
double stamp_ns() {
  static const double measured = [] {
    std::vector<PartTicks> parts(256);
    const int64_t plain = rounds_ns(false, parts);
    const int64_t stamped = rounds_ns(true, parts);
    return std::max(0.0, static_cast<double>(stamped - plain) / static_cast<double>(parts.size()));
  }();
  return measured;
}

// What recording a run costs it (bench/results/trace_cost.md). Where only some runs are recorded, a
// record meets colder code and memory than where all are: these are its costs there. Of a step that
// several threads share they wait for the slowest.
double record_ns(size_t steps, size_t threads) {
  const double run = 60 + 2 * stamp_ns();
  const double step = threads > 1 ? 70 + 24 * stamp_ns() : 1 + 5 * stamp_ns();
  return run + step * static_cast<double>(steps);
}

}  // namespace

int trace_thread() {
  static std::atomic<int> threads{0};
  thread_local const int number = threads.fetch_add(1, std::memory_order_relaxed);
  return number;
}

void TraceLog::add_span(std::string name, int64_t start_ns) noexcept {
  if (stopped()) return;
  const int64_t end_ns = now_ns();
  try {
    const std::scoped_lock lock(mutex_);
    record_.spans.push_back({std::move(name), trace_thread(), start_ns, end_ns});
  } catch (const std::bad_alloc&) {
    return;
  }
}

void TraceLog::add_steps(std::shared_ptr<const void> program, std::vector<TraceStep> steps) {
  const std::scoped_lock lock(mutex_);
  TraceProgram& entry = record_.programs[program.get()];
  entry.owner = std::move(program);
  entry.steps = std::move(steps);
  if (runs_ != nullptr) return;
  auto parts = std::make_unique<PartTicks[]>(kMostParts);
  runs_ = std::make_unique<RunTicks[]>(kMostRuns);
  parts_ = std::move(parts);
}

void TraceLog::add_nodes(std::shared_ptr<const void> program,
                         std::map<std::string, std::vector<TraceNode>> nodes) {
  const std::scoped_lock lock(mutex_);
  TraceProgram& entry = record_.programs[program.get()];
  entry.owner = std::move(program);
  entry.nodes = std::move(nodes);
}

TracePace& TraceLog::add_lane(size_t steps, size_t threads) {
  const double cost_ns = record_ns(steps, threads);
  const std::scoped_lock lock(mutex_);
  TracePace& pace = paces_.emplace_back();
  pace.parts = steps * threads;
  pace.threads = threads;
  pace.worth = TickScale(begun_, tick_moment()).counts(cost_ns / kMostShare);
  return pace;
}

RunTicks* TraceLog::take_room(TracePace& pace, int64_t number) noexcept {
  if (runs_ == nullptr) return nullptr;
  if (number >= kFirstRuns) pace.next = number + pace.stride;
  const int64_t passed_over = number - pace.last - 1;
  pace.last = number;
  const size_t parts = pace.parts;
  const size_t run = runs_taken_.fetch_add(1, std::memory_order_relaxed);
  const size_t first = parts_taken_.fetch_add(parts, std::memory_order_relaxed);
  if (run >= kMostRuns || first > kMostParts || parts > kMostParts - first) {
    runs_left_out_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  runs_[run].parts = {parts_.get() + first, parts};
  runs_[run].threads = pace.threads;
  runs_[run].passed_over = passed_over;
  return &runs_[run];
}

void TraceLog::end_run(TracePace& pace, RunTicks& run, uint64_t end) noexcept {
  const uint64_t length = std::max<uint64_t>(end - run.start, 1);
  run.end.store(end, std::memory_order_release);
  pace.stride = std::min(static_cast<int64_t>(1 + pace.worth / length), kMostApart);
}

TraceRecord TraceLog::record() const {
  const std::scoped_lock lock(mutex_);
  TraceRecord record = record_;
  record.runs_left_out = runs_left_out_.load(std::memory_order_relaxed);
  if (runs_ == nullptr) return record;
  const TickScale scale(begun_, tick_moment());
  const size_t tried = runs_taken_.load(std::memory_order_relaxed);
  for (const TracePace& pace : paces_)
    record.runs_passed_over += pace.runs.load(std::memory_order_relaxed);
  record.runs_passed_over -= static_cast<int64_t>(tried);
  const size_t taken = std::min(tried, kMostRuns);
  for (size_t r = 0; r < taken; ++r) {
    const RunTicks& run = runs_[r];
    const uint64_t end = run.end.load(std::memory_order_acquire);
    if (end == 0) continue;
    TraceRun& out = record.runs.emplace_back();
    out.program = run.program;
    out.lane = run.lane;
    out.lane_bytes = run.lane_bytes;
    out.thread = run.thread;
    out.threads = run.threads;
    out.passed_over = run.passed_over;
    out.start_ns = scale.ns(run.start);
    out.end_ns = scale.ns(end);
    out.parts.resize(run.parts.size());
    const size_t steps = run.parts.size() / run.threads;
    for (size_t p = 0; p < steps * run.threads; ++p) {
      const PartTicks& part = run.parts[p];
      if (part.thread < 0) continue;
      out.parts[p % steps * run.threads + p / steps] = {part.thread, scale.ns(part.start),
                                                        scale.ns(part.end)};
    }
  }
  return record;
}

}  // namespace pyc
