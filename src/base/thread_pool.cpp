#include "base/thread_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <thread>
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

#include "base/clock.h"
#include "base/fp_state.h"

namespace pyc {
namespace {

// About as long as waking a parked thread takes, so that spinning at most doubles a wait.
constexpr int64_t kSpinNs = 20'000;

void relax_cpu() {
#if defined(__x86_64__)
  asm volatile("pause");
#else
  asm volatile("yield");
#endif
}

// Waits until `done()` or until `spin_ns` have passed, without giving up the core.
template <class Done>
void spin_until(Done done, int64_t spin_ns) {
  if (spin_ns == 0) return;
  const int64_t deadline = now_ns() + spin_ns;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return;
      relax_cpu();
    }
  } while (now_ns() < deadline);
}

// -1 where that is not known.
int current_core() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

Status refused(int threads, int error) noexcept {
  try {
    return {Code::kOutOfMemory, fmt::format("thread pool: cannot start {} threads: {}", threads,
                                            std::generic_category().message(error))};
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "no threads"};  // fits into a string without an allocation
  }
}

}  // namespace

struct alignas(64) ThreadPool::Worker {
  std::atomic<uint32_t> ticket{0};  // counts the jobs given to this worker
  std::atomic<bool> parked{false};
  std::atomic<bool> crowded{false};  // it once shared the caller's core
  std::atomic<int> core{-1};         // where it parked
  std::thread thread;
};

// Spinning only pays when the thread that is waited for has a core to run on.
ThreadPool::ThreadPool(int threads)
    : threads_(threads),
      spin_ns_(static_cast<unsigned>(threads) <= std::thread::hardware_concurrency() ? kSpinNs : 0),
      workers_(std::make_unique<Worker[]>(static_cast<size_t>(threads - 1))) {}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("thread pool: expected 1 to {} threads, found {}", kMaxThreads, threads));
  }
  try {
    std::unique_ptr<ThreadPool> pool(new ThreadPool(threads));
    pool->start();
    return pool;
  } catch (const std::system_error& error) {
    return refused(threads, error.code().value());
  } catch (const std::bad_alloc&) {
    return refused(threads, ENOMEM);
  }
}

void ThreadPool::start() {
  for (int t = 1; t < threads_; ++t) {
    workers_[t - 1].thread = std::thread([this, t] { worker_loop(t); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  for (int t = 1; t < threads_; ++t) {
    Worker& worker = workers_[t - 1];
    if (!worker.thread.joinable()) continue;  // start() failed before it
    worker.ticket.fetch_add(1);
    worker.ticket.notify_one();
    worker.thread.join();
  }
}

void ThreadPool::parallel_for(int64_t n, Task task, void* ctx) {
  if (n <= 0) return;
  const int parts = static_cast<int>(std::min<int64_t>(n, threads_));
  const Job job = {task, ctx, n, current_core()};
  if (parts == 1 || busy_.exchange(true, std::memory_order_acquire)) {
    for (int t = 0; t < parts; ++t) run_part(job, t);
    return;
  }
  job_ = job;
  pending_.store(parts - 1, std::memory_order_relaxed);
  for (int t = 1; t < parts; ++t) wake(t);
  run_part(job, 0);
  spin_until([this] { return pending_.load(std::memory_order_relaxed) == 0; }, spin_ns_);
  for (int left = pending_.load(); left != 0; left = pending_.load()) pending_.wait(left);
  busy_.store(false, std::memory_order_release);
}

void ThreadPool::run_part(const Job& job, int thread) const {
  const int64_t length = job.n / threads_;
  const int64_t longer = job.n % threads_;  // that many parts, the first ones, have one more
  const int64_t begin = length * thread + std::min<int64_t>(thread, longer);
  const int64_t end = begin + length + (thread < longer ? 1 : 0);
  job.task(job.ctx, thread, begin, end);
}

// A woken thread is often put on the core of the one that wakes it, and where the system takes
// cores for ones without a common cache (virtual machines) the two share that core for tens of
// milliseconds while another is idle. So a worker that this happened to is kept off the cores of
// the caller and of the other workers while it is woken, and is free to move again after that.
void ThreadPool::wake(int thread) {
  Worker& worker = workers_[thread - 1];
  worker.ticket.fetch_add(1);
#if defined(__linux__)
  const bool crowded = worker.crowded.load(std::memory_order_relaxed) ||
                       worker.core.load(std::memory_order_relaxed) == job_.core;
  cpu_set_t allowed;
  const pthread_t handle = worker.thread.native_handle();
  if (spin_ns_ != 0 && crowded && worker.parked.load() &&
      pthread_getaffinity_np(handle, sizeof allowed, &allowed) == 0) {
    cpu_set_t free = allowed;
    for (int t = 0; t < threads_; ++t) {
      const int core = t == 0 ? job_.core : workers_[t - 1].core.load(std::memory_order_relaxed);
      if (t != thread && core >= 0 && core < CPU_SETSIZE) CPU_CLR(core, &free);
    }
    if (CPU_COUNT(&free) > 0 && pthread_setaffinity_np(handle, sizeof free, &free) == 0) {
      worker.ticket.notify_one();
      pthread_setaffinity_np(handle, sizeof allowed, &allowed);
      return;
    }
  }
#endif
  worker.ticket.notify_one();
}

void ThreadPool::worker_loop(int thread) {
  const FpStateGuard fp_state;
  Worker& worker = workers_[thread - 1];
  const std::atomic<uint32_t>& ticket = worker.ticket;
  for (uint32_t seen = 0;; ++seen) {
    spin_until([&] { return ticket.load(std::memory_order_relaxed) != seen; }, spin_ns_);
    if (ticket.load() == seen) {
      worker.core.store(current_core(), std::memory_order_relaxed);
      worker.parked.store(true);
      ticket.wait(seen);
      worker.parked.store(false, std::memory_order_relaxed);
    }
    if (stopping_) return;
    if (current_core() == job_.core) worker.crowded.store(true, std::memory_order_relaxed);
    run_part(job_, thread);
    // The last one wakes the caller; the others leave it asleep.
    if (pending_.fetch_sub(1) == 1) pending_.notify_one();
  }
}

}  // namespace pyc
