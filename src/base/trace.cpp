#include "base/trace.h"

#include <new>
#include <utility>

#include "base/clock.h"

namespace pyc {

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
}

void TraceLog::add_nodes(std::shared_ptr<const void> program,
                         std::map<std::string, std::vector<TraceNode>> nodes) {
  const std::scoped_lock lock(mutex_);
  TraceProgram& entry = record_.programs[program.get()];
  entry.owner = std::move(program);
  entry.nodes = std::move(nodes);
}

bool TraceLog::wants_run(size_t parts) noexcept {
  if (stopped()) return false;
  const std::scoped_lock lock(mutex_);
  if (parts_ + parts > kMostParts) {
    ++record_.runs_left_out;
    return false;
  }
  parts_ += parts;
  return true;
}

void TraceLog::add_run(TraceRun run) noexcept {
  const std::scoped_lock lock(mutex_);
  try {
    record_.runs.push_back(std::move(run));
  } catch (const std::bad_alloc&) {
    ++record_.runs_left_out;
  }
}

TraceRecord TraceLog::record() const {
  const std::scoped_lock lock(mutex_);
  return record_;
}

}  // namespace pyc
