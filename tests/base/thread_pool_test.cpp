#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

#include "base/fp_state.h"
#include "sanitizers.h"

namespace pyc {
namespace {

std::unique_ptr<ThreadPool> make_pool(int threads) {
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool.ok()) << pool.status().to_string();
  return std::move(pool).value();
}

// What one parallel_for did. Each thread writes its own part only.
struct Record {
  struct Part {
    int64_t begin = 0;
    int64_t end = 0;
    int calls = 0;
    std::thread::id id;
  };
  std::vector<Part> parts;

  explicit Record(int threads) : parts(static_cast<size_t>(threads)) {}

  static void task(void* ctx, int thread, int64_t begin, int64_t end) {
    Part& part = static_cast<Record*>(ctx)->parts.at(static_cast<size_t>(thread));
    part.begin = begin;
    part.end = end;
    part.id = std::this_thread::get_id();
    ++part.calls;
  }
};

// Parts that end only when all have begun: each runs on its own thread.
class Meeting {
 public:
  explicit Meeting(int parts) : missing_(parts) {}
  void join() {
    --missing_;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (missing_ > 0 && std::chrono::steady_clock::now() < deadline) sched_yield();
    EXPECT_EQ(missing_, 0);
  }

 private:
  std::atomic<int> missing_;
};

// In order, without gaps, longer parts first, nothing called for empty parts.
void expect_partition(const Record& record, int64_t n) {
  const int64_t threads = static_cast<int64_t>(record.parts.size());
  int64_t next = 0;
  for (int64_t t = 0; t < threads; ++t) {
    const Record::Part& part = record.parts[static_cast<size_t>(t)];
    const int64_t length = n / threads + (t < n % threads ? 1 : 0);
    ASSERT_EQ(part.calls, length > 0 ? 1 : 0) << "part " << t << " of " << n;
    if (length == 0) continue;
    ASSERT_EQ(part.begin, next);
    ASSERT_EQ(part.end, next + length);
    next = part.end;
  }
  ASSERT_EQ(next, n);
}

TEST(ThreadPool, PartitionCoversEveryIterationOnce) {
  for (const int threads : {1, 2, 7}) {
    const std::unique_ptr<ThreadPool> pool = make_pool(threads);
    EXPECT_EQ(pool->threads(), threads);
    for (const int64_t n : {0, 1, 2, 3, 6, 7, 8, 13, 14, 15, 100, 1000, 1 << 20}) {
      Record record(threads);
      pool->parallel_for(n, Record::task, &record);
      expect_partition(record, n);
    }
    Record huge(threads);
    pool->parallel_for(std::numeric_limits<int64_t>::max(), Record::task, &huge);
    expect_partition(huge, std::numeric_limits<int64_t>::max());
  }
}

TEST(ThreadPool, NegativeLengthRunsNothing) {
  const std::unique_ptr<ThreadPool> pool = make_pool(2);
  Record record(2);
  pool->parallel_for(-5, Record::task, &record);
  EXPECT_EQ(record.parts[0].calls + record.parts[1].calls, 0);
}

TEST(ThreadPool, PartZeroRunsOnTheCallerAndTheOthersElsewhere) {
  struct Met {
    Record record{3};
    Meeting meeting{3};
    static void task(void* ctx, int thread, int64_t begin, int64_t end) {
      auto* self = static_cast<Met*>(ctx);
      Record::task(&self->record, thread, begin, end);
      self->meeting.join();
    }
  };
  const std::unique_ptr<ThreadPool> pool = make_pool(3);
  Met one;
  Met two;
  pool->parallel_for(3, Met::task, &one);
  pool->parallel_for(300, Met::task, &two);
  const Record& first = one.record;
  const Record& second = two.record;
  EXPECT_EQ(first.parts[0].id, std::this_thread::get_id());
  EXPECT_NE(first.parts[1].id, first.parts[0].id);
  EXPECT_NE(first.parts[2].id, first.parts[1].id);
  for (int t = 0; t < 3; ++t) EXPECT_EQ(first.parts[t].id, second.parts[t].id) << t;
}

// A worker that sleeps takes longer to begin than a caller to do nothing.
TEST(ThreadPool, PartsThatNobodyBeganRunOnTheCaller) {
  const std::unique_ptr<ThreadPool> pool = make_pool(2);
  int on_caller = 0;
  for (int loop = 0; loop < 1000 && on_caller == 0; ++loop) {
    Record record(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it parks
    pool->parallel_for(10, Record::task, &record);
    expect_partition(record, 10);
    on_caller += record.parts[1].id == std::this_thread::get_id() ? 1 : 0;
  }
  EXPECT_GT(on_caller, 0);
}

TEST(ThreadPool, OneIterationRunsInline) {
  const std::unique_ptr<ThreadPool> pool = make_pool(2);
  Record record(2);
  pool->parallel_for(1, Record::task, &record);
  EXPECT_EQ(record.parts[0].id, std::this_thread::get_id());
  EXPECT_EQ(record.parts[1].calls, 0);
}

struct Sum {
  std::vector<int64_t> values;
  int64_t partial[8] = {};

  static void task(void* ctx, int thread, int64_t begin, int64_t end) {
    Sum& sum = *static_cast<Sum*>(ctx);
    sum.partial[thread] = 0;
    for (int64_t i = begin; i < end; ++i) {
      sum.values[static_cast<size_t>(i)] += i;
      sum.partial[thread] += sum.values[static_cast<size_t>(i)];
    }
  }
  int64_t total() const {
    int64_t all = 0;
    for (const int64_t p : partial) all += p;
    return all;
  }
};

// Writes of one loop are visible to the caller and to the next loop.
TEST(ThreadPool, ManyShortLoops) {
  const int loops = kSanitized ? 2000 : 20'000;
  constexpr int64_t kLength = 64;
  for (const int threads : {2, 7}) {
    const std::unique_ptr<ThreadPool> pool = make_pool(threads);
    Sum sum;
    sum.values.assign(kLength, 0);
    for (int64_t loop = 1; loop <= loops; ++loop) {
      pool->parallel_for(kLength, Sum::task, &sum);
      ASSERT_EQ(sum.total(), loop * kLength * (kLength - 1) / 2);
    }
  }
}

TEST(ThreadPool, ConcurrentCallersGetTheSameParts) {
  const int loops = kSanitized ? 1000 : 20'000;
  const std::unique_ptr<ThreadPool> pool = make_pool(3);
  std::atomic<int> wrong{0};
  const auto caller = [&](int64_t n) {
    for (int i = 0; i < loops; ++i) {
      Sum sum;
      sum.values.assign(static_cast<size_t>(n), 0);
      pool->parallel_for(n, Sum::task, &sum);
      if (sum.total() != n * (n - 1) / 2) ++wrong;
    }
  };
  std::vector<std::thread> callers;
  for (const int64_t n : {5, 17, 64, 1000}) callers.emplace_back(caller, n);
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

struct Nested {
  ThreadPool* pool;
  std::vector<Record> records;

  static void task(void* ctx, int thread, int64_t, int64_t) {
    Nested& nested = *static_cast<Nested*>(ctx);
    Record& record = nested.records[static_cast<size_t>(thread)];
    nested.pool->parallel_for(10, Record::task, &record);
  }
};

TEST(ThreadPool, LoopInsideATaskRunsOnItsThreadUnderAllIds) {
  const std::unique_ptr<ThreadPool> pool = make_pool(2);
  Nested nested = {pool.get(), {Record(2), Record(2)}};
  pool->parallel_for(2, Nested::task, &nested);
  for (const Record& record : nested.records) {
    expect_partition(record, 10);
    EXPECT_EQ(record.parts[0].id, record.parts[1].id);
  }
}

TEST(ThreadPool, CreateRefusesBadCounts) {
  for (const int threads : {0, -1, std::numeric_limits<int>::min(), ThreadPool::kMaxThreads + 1}) {
    const Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads);
    ASSERT_FALSE(pool.ok()) << threads;
    EXPECT_EQ(pool.status().code(), Code::kInvalidArgument);
    EXPECT_NE(pool.status().message().find(std::to_string(threads)), std::string::npos);
  }
}

TEST(ThreadPool, UnusedPoolStops) {
  for (int i = 0; i < 50; ++i) make_pool(4);
}

// Leaves address space for some of the stacks, not for all.
[[noreturn]] void create_with_little_memory() {
  rlimit limit = {};
  limit.rlim_cur = limit.rlim_max = rlim_t{256} << 20;
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(2);
  const Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(ThreadPool::kMaxThreads);
  std::_Exit(!pool.ok() && pool.status().code() == Code::kOutOfMemory ? 0 : 1);
}

TEST(ThreadPoolDeathTest, RefusedThreadsAreReported) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need the address space";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(create_with_little_memory(), testing::ExitedWithCode(0), "");
}

struct FpStates {
  uint64_t of[3] = {};
  Meeting meeting{3};
  static void task(void* ctx, int thread, int64_t, int64_t) {
    auto* self = static_cast<FpStates*>(ctx);
    self->of[thread] = read_fp_control();
    self->meeting.join();
  }
};

#if defined(__linux__)
// Where two threads were seen on one core, workers are woken on one each: none is left bound to it.
TEST(ThreadPool, WorkersMayRunOnAllCoresAgain) {
  struct Cores {
    cpu_set_t all;
    std::atomic<int> bound = 0;
    static void task(void* ctx, int, int64_t, int64_t) {
      auto* self = static_cast<Cores*>(ctx);
      const auto free_again = [&] {
        cpu_set_t now;
        return sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &self->all);
      };
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (!free_again() && std::chrono::steady_clock::now() < deadline) sched_yield();
      self->bound += free_again() ? 0 : 1;
    }
  } cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof cores.all, &cores.all), 0);
  for (const int threads : {2, 3}) {
    const std::unique_ptr<ThreadPool> pool = make_pool(threads);
    for (int loop = 0; loop < 50 && cores.bound == 0; ++loop) {
      pool->parallel_for(threads, Cores::task, &cores);
      std::this_thread::sleep_for(std::chrono::microseconds(600));  // they park
    }
  }
  EXPECT_EQ(cores.bound, 0);
}
#endif

TEST(ThreadPool, WorkersIgnoreTheFloatingPointStateOfTheirMaker) {
#if defined(__x86_64__)
  constexpr uint64_t kFlushToZero = 0x8040;
  constexpr uint64_t kStickyFlags = 0x3F;
#else
  constexpr uint64_t kFlushToZero = uint64_t{1} << 24;
  constexpr uint64_t kStickyFlags = 0;
#endif
  const uint64_t original = read_fp_control();
  write_fp_control(original | kFlushToZero);
  const std::unique_ptr<ThreadPool> pool = make_pool(3);
  FpStates states;
  pool->parallel_for(3, FpStates::task, &states);
  write_fp_control(original);
  EXPECT_NE(states.of[0] & kFlushToZero, 0U) << "the caller keeps its own";
  EXPECT_EQ(states.of[1] & ~kStickyFlags, original & ~kStickyFlags);
  EXPECT_EQ(states.of[2] & ~kStickyFlags, original & ~kStickyFlags);
}

}  // namespace
}  // namespace pyc
