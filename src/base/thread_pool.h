#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace pyc {

// A fixed set of threads for loops with independent iterations. How a loop is cut into parts
// depends on its length and the pool's size alone, never on timing. Threads are not bound to cores,
// but where the system puts two of them on one core they are woken on different ones.
class ThreadPool {
 public:
  // Runs iterations [begin, end), never empty, as thread `thread`. Must not throw.
  using Task = void (*)(void* ctx, int thread, int64_t begin, int64_t end);

  static constexpr int kMaxThreads = 1024;

  // A pool of `threads` threads, the calling one included: threads - 1 are started.
  // kInvalidArgument unless 1 <= threads <= kMaxThreads; kOutOfMemory when the system refuses a
  // thread. Never throws.
  static Result<std::unique_ptr<ThreadPool>> create(int threads);

  // No parallel_for may be running.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Splits [0, n) into threads() contiguous parts whose lengths differ by at most one, longer ones
  // first, runs part t with thread id t and returns when all are done; what the parts wrote is then
  // visible. Empty parts are not run. Each thread has a part of its own, the caller part 0; when
  // the caller is done with it, it also runs those that their threads have not begun. Allocates
  // nothing. May be called from several threads at once and from inside a task: while the pool is
  // busy, the later caller runs its parts itself, one after another under the same ids. Pool
  // threads run with the floating-point state of FpStateGuard; the caller keeps its own.
  void parallel_for(int64_t n, Task task, void* ctx);

 private:
  struct Worker;
  struct Job {
    Task task = nullptr;
    void* ctx = nullptr;
    int64_t n = 0;
    int core = -1;  // the caller's, where known
  };

  explicit ThreadPool(int threads);
  void start();
  void run_part(const Job& job, int thread) const;
  void run_unclaimed(const Job& job, int parts);
  void worker_loop(int thread);
  void wake(int parts);
  void look_around(int thread);

  const int threads_;
  const int64_t spin_ns_;
  const std::unique_ptr<Worker[]> workers_;  // threads_ - 1 of them; the one at t - 1 runs part t
  // Written by the holder of busy_ and published to a worker by its ticket.
  Job job_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> crowded_{false};  // two threads were once seen on one core
  alignas(64) std::atomic<bool> busy_{false};
  alignas(64) std::atomic<int> pending_{0};  // parts but the first that are not finished
};

}  // namespace pyc
