#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace pyc {

// A fixed set of threads for loops with independent iterations. How a loop is cut into pieces
// depends on its length and the pool's size alone, never on timing; who runs a piece does. Threads
// are not bound to cores, but where the system puts two of them on one core they are woken on
// different ones.
class ThreadPool {
 public:
  // Runs iterations [begin, end), never empty, as thread `thread`. Must not throw.
  using Task = void (*)(void* ctx, int thread, int64_t begin, int64_t end);

  static constexpr int kMaxThreads = 1024;
  static constexpr int64_t kPieces = 5;

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
  // first. A part is begun in up to kPieces pieces: half of it (a single iteration of no more than
  // kPieces), then what is left in lengths that differ by at most one. Runs `task` for each piece
  // and returns when all are done; what they wrote is then visible. Each thread has a part of its
  // own, the caller part 0, and begins its pieces in order, or several at once where they are
  // short; one that is done goes on with pieces of others that are not begun, so that a thread that
  // is slow, lost its core or shares it holds up no more than a piece. `thread` is the id of the
  // thread that runs the piece. Allocates nothing. May be called from several threads at once and
  // from inside a task: while the pool is busy, the later caller runs its parts itself, one after
  // another, part t as thread t. Pool threads run with the floating-point state of FpStateGuard;
  // the caller keeps its own.
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
  // Runs pieces of job `number` as thread `thread` until none is left to begin, and returns how
  // many; of one part. `woken`: the thread slept before.
  int work(int thread, uint32_t number, bool woken);
  int work_on(int part, int thread, uint32_t number, bool woken);
  void worker_loop(int thread);
  void wake(int parts);
  void look_around(int thread);

  const int threads_;
  const int64_t spin_ns_;
  const std::unique_ptr<Worker[]> workers_;  // the first, who has no thread, is the caller
  // Written by the holder of busy_ and published to a worker by its ticket.
  Job job_;
  uint32_t number_ = 0;  // of the holder of busy_: the last job's
  std::atomic<bool> stopping_{false};
  std::atomic<bool> crowded_{false};  // two threads were once seen on one core
  alignas(64) std::atomic<bool> busy_{false};
  alignas(64) std::atomic<int> pending_{0};  // pieces that are not finished
};

}  // namespace pyc
