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

struct Range {
  int64_t begin;
  int64_t end;
};

// Part i of `parts` contiguous ones, of which the first have one more where they cannot be equal.
Range share_of(Range all, int64_t parts, int64_t i) {
  const int64_t length = (all.end - all.begin) / parts;
  const int64_t longer = (all.end - all.begin) % parts;
  const int64_t begin = all.begin + length * i + std::min(i, longer);
  return {begin, begin + length + (i < longer ? 1 : 0)};
}

// A thread whose first half took less than this runs the other half in one go: looks of others at
// what it has left, and calls for smaller pieces, take a microsecond or two.
constexpr int64_t kShortNs = 5'000;

// Half of a part is its first piece, where there is enough; the rest is cut into smaller ones: a
// thread that takes up to twice as long as others is through with its half when they are done.
struct Pieces {
  Range first;
  Range others;
  int64_t count = 0;

  explicit Pieces(Range part) {
    const int64_t length = part.end - part.begin;
    const int64_t half = length <= ThreadPool::kPieces ? std::min<int64_t>(length, 1) : length / 2;
    first = {part.begin, part.begin + half};
    others = {first.end, part.end};
    count = std::min(half, int64_t{1}) + smaller();
  }
  int64_t smaller() const { return std::min(others.end - others.begin, ThreadPool::kPieces - 1); }
  Range at(int64_t i) const { return i == 0 ? first : share_of(others, smaller(), i - 1); }
  Range from(int64_t i) const { return {at(i).begin, others.end}; }
};

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
  // Begins a piece of this worker's part of job `number`, or `all` that are left: how many were
  // left with it, 0 if none. Also 0 for a job that is over: all its pieces were begun. Looks before
  // it asks for the line, as looks at many workers overlap.
  uint32_t take(uint32_t number, bool all = false) {
    uint64_t seen = left.load(std::memory_order_relaxed);
    while (seen >> 32 == number && static_cast<uint32_t>(seen) != 0) {
      const uint64_t next = all ? uint64_t{number} << 32 : seen - 1;
      if (left.compare_exchange_weak(seen, next)) return static_cast<uint32_t>(seen);
    }
    return 0;
  }
  // By the holder of busy_, who alone writes them. Stores, which unlike additions do not wait for
  // the line.
  void give_pieces(uint32_t number, int64_t pieces) {
    left.store(uint64_t{number} << 32 | static_cast<uint32_t>(pieces), std::memory_order_relaxed);
  }
  void give_ticket(uint32_t number) { ticket.store(number, std::memory_order_release); }

  std::atomic<uint32_t> ticket{0};  // the last job that this worker has a part of
  std::atomic<bool> parked{false};
  std::atomic<uint64_t> left{0};  // a job's number, and how many pieces of the part are not begun
  std::atomic<int> core{-1};      // where it parked or woke up last
  bool waits = false;             // of the holder of busy_: whether it must be woken
  int start = -1;                 // of the same: and where
  std::thread thread;
};

// Spinning only pays when the thread that is waited for has a core to run on.
ThreadPool::ThreadPool(int threads)
    : threads_(threads),
      spin_ns_(threads <= core_count() ? kSpinNs : 0),
      workers_(std::make_unique<Worker[]>(static_cast<size_t>(threads))) {}

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
    workers_[t].thread = std::thread([this, t] { worker_loop(t); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  for (int t = 1; t < threads_; ++t) {
    Worker& worker = workers_[t];
    if (!worker.thread.joinable()) continue;  // start() failed before it
    worker.ticket.fetch_add(1);
    worker.ticket.notify_one();
    worker.thread.join();
  }
}

void ThreadPool::parallel_for(int64_t n, Task task, void* ctx) {
  if (n <= 0) return;
  const int parts = static_cast<int>(std::min<int64_t>(n, threads_));
  if (parts == 1 || busy_.exchange(true, std::memory_order_acquire)) {
    for (int t = 0; t < parts; ++t) {
      const Range part = share_of({0, n}, threads_, t);
      task(ctx, t, part.begin, part.end);
    }
    return;
  }
  job_ = {task, ctx, n, current_core()};
  const uint32_t number = ++number_;
  int64_t all = 0;
  for (int t = 0; t < parts; ++t) {
    const int64_t pieces = Pieces(share_of({0, n}, threads_, t)).count;
    workers_[t].give_pieces(number, pieces);
    all += pieces;
  }
  pending_.store(static_cast<int>(all), std::memory_order_relaxed);
  wake(parts);
  pending_.fetch_sub(work(0, number, false));
  spin_until([this] { return pending_.load(std::memory_order_relaxed) == 0; }, spin_ns_);
  for (int left = pending_.load(); left != 0; left = pending_.load()) pending_.wait(left);
  busy_.store(false, std::memory_order_release);
}

int ThreadPool::work(int thread, uint32_t number, bool woken) {
  int done = 0;
  for (int i = 0; i < threads_; ++i) {
    const int t = thread + i < threads_ ? thread + i : thread + i - threads_;
    done += work_on(t, thread, number, woken && done == 0);
    // Parts of one piece are all begun but those of threads that sleep, which the caller finds:
    // looks of all at each other take longer than short loops.
    if (thread != 0 && done != 0 && job_.n <= threads_) break;
  }
  return done;
}

int ThreadPool::work_on(int part, int thread, uint32_t number, bool woken) {
  Worker& owner = workers_[part];
  int done = 0;
  // Whoever begins a piece keeps its job alive: nothing of job_ may be read before.
  int64_t left = owner.take(number);
  if (left == 0) return 0;
  if (woken && spin_ns_ != 0) look_around(thread);
  const Pieces pieces(share_of({0, job_.n}, threads_, part));
  const auto run = [&](Range range) { job_.task(job_.ctx, thread, range.begin, range.end); };
  if (part == thread && left == pieces.count && pieces.count > 1) {
    const int64_t start = now_ns();
    run(pieces.first);
    ++done;
    if (now_ns() - start < kShortNs) {
      left = owner.take(number, true);
      if (left != 0) run(pieces.from(pieces.count - left));
      return done + static_cast<int>(left);
    }
    left = owner.take(number);
  }
  for (; left != 0; left = owner.take(number), ++done) run(pieces.at(pieces.count - left));
  return done;
}

// A woken thread is often put on the core of the one that wakes it, and where the system takes
// cores for ones without a common cache (virtual machines) the two share that core for tens of
// milliseconds while another is idle. Once that was seen, parked workers start on a core each: the
// one they parked on, unless another thread is there.
void ThreadPool::wake(int parts) {
  const auto each = [&](const auto& visit) {
    for (int t = 1; t < parts; ++t) visit(workers_[t]);
  };
  const auto give = [number = number_](Worker& worker) { worker.give_ticket(number); };
  if (!crowded_.load(std::memory_order_relaxed)) {
    each(give);
    // Either a worker is seen to be parked here, or it sees its ticket before it sleeps.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    each([](Worker& worker) {
      if (worker.parked.load(std::memory_order_relaxed)) worker.ticket.notify_one();
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
  each(give);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  each([&](Worker& worker) {
    if (!worker.waits) {
      if (worker.parked.load(std::memory_order_relaxed)) worker.ticket.notify_one();
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
  workers_[thread].core.store(here, std::memory_order_relaxed);
  if (crowded_.load(std::memory_order_relaxed)) return;
  for (int t = 1; t < threads_; ++t) {
    crowded |= t != thread && workers_[t].core.load(std::memory_order_relaxed) == here;
  }
  if (crowded) crowded_.store(true, std::memory_order_relaxed);
}

void ThreadPool::worker_loop(int thread) {
  const FpStateGuard fp_state;
  Worker& worker = workers_[thread];
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
    const int done = work(thread, seen, park);
    // The last one wakes the caller; the others leave it asleep.
    if (done != 0 && pending_.fetch_sub(done) == done) pending_.notify_one();
  }
}

}  // namespace pyc
