#include "base/thread_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/cores.h"
#include "base/fp_state.h"

namespace pyc {
namespace {

// How long a thread waits before it parks. Waking the parked threads of a pool, one after another,
// takes as long in a virtual machine; the threads of OpenBLAS wait a hundred times longer.
constexpr int64_t kSpinNs = 200'000;

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
  // Whether this call is the one to run the part of job `number`. False for a job that is over: the
  // part of every job is claimed, one after another.
  bool claim(uint32_t number) {
    uint32_t before = number - 1;
    return claimed.compare_exchange_strong(before, number);
  }

  std::atomic<uint32_t> ticket{0};   // counts the jobs given to this worker
  std::atomic<uint32_t> claimed{0};  // the last whose part was begun, by it or by the caller
  std::atomic<bool> parked{false};
  std::atomic<int> core{-1};  // where it parked or woke up last
  bool waits = false;         // of the holder of busy_: whether it must be woken
  int start = -1;             // of the same: and where
  std::thread thread;
};

// Spinning only pays when the thread that is waited for has a core to run on.
ThreadPool::ThreadPool(int threads)
    : threads_(threads),
      spin_ns_(threads <= core_count() ? kSpinNs : 0),
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
  wake(parts);
  run_part(job, 0);
  run_unclaimed(job, parts);
  spin_until([this] { return pending_.load(std::memory_order_relaxed) == 0; }, spin_ns_);
  for (int left = pending_.load(); left != 0; left = pending_.load()) pending_.wait(left);
  busy_.store(false, std::memory_order_release);
}

// A worker may take long to get a core: other programs run too.
void ThreadPool::run_unclaimed(const Job& job, int parts) {
  for (int t = 1; t < parts; ++t) {
    Worker& worker = workers_[t - 1];
    if (!worker.claim(worker.ticket.load(std::memory_order_relaxed))) continue;
    run_part(job, t);
    pending_.fetch_sub(1);
  }
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
// milliseconds while another is idle. Once that was seen, parked workers start on a core each: the
// one they parked on, unless another thread is there.
void ThreadPool::wake(int parts) {
  const auto each = [&](const auto& visit) {
    for (int t = 1; t < parts; ++t) visit(workers_[t - 1]);
  };
  if (!crowded_.load(std::memory_order_relaxed)) {
    each([](Worker& worker) {
      worker.ticket.fetch_add(1);
      worker.ticket.notify_one();
    });
    return;
  }
  CoreSet taken;
  take_core(taken, job_.core);
  each([&](Worker& worker) {
    worker.waits = worker.parked.load();
    if (!worker.waits) take_core(taken, worker.core.load(std::memory_order_relaxed));
  });
  each([&](Worker& worker) {
    if (!worker.waits) return;
    const int core = worker.core.load(std::memory_order_relaxed);
    const bool free = core >= 0 && static_cast<size_t>(core) < taken.size() && !taken[core];
    worker.start = free ? core : -1;
    take_core(taken, worker.start);
  });
  each([&](Worker& worker) {
    worker.ticket.fetch_add(1);
    if (!worker.waits) {
      worker.ticket.notify_one();
      return;
    }
    const StartOnCore start(worker.thread.native_handle(), worker.start, taken);
    worker.ticket.notify_one();
  });
}

// Of a worker that was woken up: whether another thread of the pool is here too.
void ThreadPool::look_around(int thread) {
  const int here = current_core();
  bool crowded = here == job_.core;
  workers_[thread - 1].core.store(here, std::memory_order_relaxed);
  if (crowded_.load(std::memory_order_relaxed)) return;
  for (int t = 1; t < threads_; ++t) {
    crowded |= t != thread && workers_[t - 1].core.load(std::memory_order_relaxed) == here;
  }
  if (crowded) crowded_.store(true, std::memory_order_relaxed);
}

void ThreadPool::worker_loop(int thread) {
  const FpStateGuard fp_state;
  Worker& worker = workers_[thread - 1];
  const std::atomic<uint32_t>& ticket = worker.ticket;
  for (uint32_t seen = 0;;) {
    spin_until([&] { return ticket.load(std::memory_order_relaxed) != seen; }, spin_ns_);
    const bool park = ticket.load() == seen;
    if (park) {
      worker.core.store(current_core(), std::memory_order_relaxed);
      worker.parked.store(true);
      ticket.wait(seen);
      worker.parked.store(false, std::memory_order_relaxed);
    }
    seen = ticket.load();
    if (stopping_) return;
    // Whoever claims a part keeps its job alive: nothing of job_ may be read before.
    if (!worker.claim(seen)) continue;
    if (park && spin_ns_ != 0) look_around(thread);
    run_part(job_, thread);
    // The last one wakes the caller; the others leave it asleep.
    if (pending_.fetch_sub(1) == 1) pending_.notify_one();
  }
}

}  // namespace pyc
