#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
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

// What one parallel_for did, piece by piece.
struct Record {
  struct Piece {
    int64_t begin = 0;
    int64_t end = 0;
    int thread = 0;
    std::thread::id id;
  };
  std::mutex mutex;
  std::vector<Piece> pieces;

  static void task(void* ctx, int thread, int64_t begin, int64_t end) {
    auto& record = *static_cast<Record*>(ctx);
    const std::lock_guard lock(record.mutex);
    record.pieces.push_back({begin, end, thread, std::this_thread::get_id()});
  }
  void sort() {
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
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

// `parts` lengths that differ by at most one, longer ones first.
std::vector<int64_t> lengths_of(int64_t n, int64_t parts) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < parts; ++i) out.push_back(n / parts + (i < n % parts ? 1 : 0));
  return out;
}

// Half of a part first, then smaller ones.
std::vector<int64_t> pieces_of(int64_t part) {
  const int64_t first = part <= ThreadPool::kPieces ? 1 : part / 2;
  std::vector<int64_t> out = {first};
  const int64_t others = std::min(part - first, ThreadPool::kPieces - 1);
  if (others == 0) return out;
  for (const int64_t piece : lengths_of(part - first, others)) out.push_back(piece);
  return out;
}

// Without gaps; each thread's part in pieces, of which a call has one or several, nothing called
// for empty ones. `whole`: the caller
// ran its parts itself.
void expect_partition(Record& record, int64_t n, int threads, bool whole = false) {
  record.sort();
  std::vector<int64_t> wanted;
  for (const int64_t part : lengths_of(n, threads)) {
    if (part == 0) continue;
    const std::vector<int64_t> pieces = whole ? std::vector<int64_t>{part} : pieces_of(part);
    wanted.insert(wanted.end(), pieces.begin(), pieces.end());
  }
  int64_t next = 0;
  auto end = wanted.begin();
  for (const Record::Piece& piece : record.pieces) {
    ASSERT_EQ(piece.begin, next);
    ASSERT_NE(end, wanted.end());
    do {
      next += *end++;
    } while (next < piece.end && end != wanted.end());
    ASSERT_EQ(piece.end, next);
    ASSERT_GE(piece.thread, 0);
    ASSERT_LT(piece.thread, threads);
  }
  ASSERT_EQ(next, n);
}

TEST(ThreadPool, PartitionCoversEveryIterationOnce) {
  for (const int threads : {1, 2, 7}) {
    const std::unique_ptr<ThreadPool> pool = make_pool(threads);
    EXPECT_EQ(pool->threads(), threads);
    for (const int64_t n : {0, 1, 2, 3, 6, 7, 8, 13, 14, 15, 100, 1000, 1 << 20}) {
      Record record;
      pool->parallel_for(n, Record::task, &record);
      expect_partition(record, n, threads, threads == 1);
    }
    Record huge;
    pool->parallel_for(std::numeric_limits<int64_t>::max(), Record::task, &huge);
    expect_partition(huge, std::numeric_limits<int64_t>::max(), threads, threads == 1);
  }
}

TEST(ThreadPool, NegativeLengthRunsNothing) {
  const std::unique_ptr<ThreadPool> pool = make_pool(2);
  Record record;
  pool->parallel_for(-5, Record::task, &record);
  EXPECT_TRUE(record.pieces.empty());
}

TEST(ThreadPool, ThreadsHaveIdsOfTheirOwnAndTheCallerHasTheFirst) {
  struct Met {
    Record record;
    Meeting meeting{3};
    static void task(void* ctx, int thread, int64_t begin, int64_t end) {
      auto* self = static_cast<Met*>(ctx);
      Record::task(&self->record, thread, begin, end);
      self->meeting.join();
    }
  };
  const std::unique_ptr<ThreadPool> pool = make_pool(3);
  std::map<int, std::thread::id> ids;
  for (int loop = 0; loop < 20; ++loop) {
    Met met;
    pool->parallel_for(3, Met::task, &met);
    std::set<int> here;
    for (const Record::Piece& piece : met.record.pieces) {
      EXPECT_EQ(ids.try_emplace(piece.thread, piece.id).first->second, piece.id);
      here.insert(piece.thread);
    }
    EXPECT_EQ(here.size(), 3U);
  }
  EXPECT_EQ(ids.at(0), std::this_thread::get_id());
}

// A thread that does not get on with its first piece is left only that one.
TEST(ThreadPool, OthersRunThePiecesOfAThreadThatIsHeldUp) {
  struct Held {
    Record record;
    std::atomic<int64_t> others{0};
    int64_t others_first = 0;  // that were done before the first piece was
    static void task(void* ctx, int thread, int64_t begin, int64_t end) {
      auto* self = static_cast<Held*>(ctx);
      Record::task(&self->record, thread, begin, end);
      if (begin != 0) {
        self->others += end - begin;
        return;
      }
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (self->others < 24 && std::chrono::steady_clock::now() < deadline) sched_yield();
      self->others_first = self->others;
    }
  };
  const std::unique_ptr<ThreadPool> pool = make_pool(2);
  Held held;
  pool->parallel_for(32, Held::task, &held);
  // The first piece is [0, 8): nobody but its thread runs it, and all others come to an end first.
  EXPECT_EQ(held.others_first, 24);
  expect_partition(held.record, 32, 2);
}

// A worker that sleeps takes longer to begin than a caller to do nothing.
TEST(ThreadPool, PiecesThatNobodyBeganRunOnTheCaller) {
  const std::unique_ptr<ThreadPool> pool = make_pool(2);
  int on_caller = 0;
  for (int loop = 0; loop < 1000 && on_caller == 0; ++loop) {
    Record record;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it parks
    pool->parallel_for(10, Record::task, &record);
    expect_partition(record, 10, 2);
    on_caller += record.pieces.back().id == std::this_thread::get_id() ? 1 : 0;
  }
  EXPECT_GT(on_caller, 0);
}

TEST(ThreadPool, OneIterationRunsInline) {
  const std::unique_ptr<ThreadPool> pool = make_pool(2);
  Record record;
  pool->parallel_for(1, Record::task, &record);
  ASSERT_EQ(record.pieces.size(), 1U);
  EXPECT_EQ(record.pieces[0].id, std::this_thread::get_id());
  EXPECT_EQ(record.pieces[0].thread, 0);
}

struct Sum {
  std::vector<int64_t> values;
  int64_t partial[8] = {};  // by thread, as scratch is

  static void task(void* ctx, int thread, int64_t begin, int64_t end) {
    Sum& sum = *static_cast<Sum*>(ctx);
    for (int64_t i = begin; i < end; ++i) {
      sum.values[static_cast<size_t>(i)] += i;
      sum.partial[thread] += sum.values[static_cast<size_t>(i)];
    }
  }
  int64_t take_total() {
    int64_t all = 0;
    for (int64_t& p : partial) all += std::exchange(p, 0);
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
      ASSERT_EQ(sum.take_total(), loop * kLength * (kLength - 1) / 2);
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
      if (sum.take_total() != n * (n - 1) / 2) ++wrong;
    }
  };
  std::vector<std::thread> callers;
  for (const int64_t n : {5, 17, 64, 1000}) callers.emplace_back(caller, n);
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

struct Nested {
  ThreadPool* pool;
  std::array<Record, 2> records;

  static void task(void* ctx, int /*thread*/, int64_t begin, int64_t /*end*/) {
    Nested& nested = *static_cast<Nested*>(ctx);
    nested.pool->parallel_for(10, Record::task, &nested.records[static_cast<size_t>(begin)]);
  }
};

TEST(ThreadPool, LoopInsideATaskRunsOnItsThreadUnderAllIds) {
  const std::unique_ptr<ThreadPool> pool = make_pool(2);
  Nested nested = {pool.get(), {}};
  pool->parallel_for(2, Nested::task, &nested);
  for (Record& record : nested.records) {
    expect_partition(record, 10, 2, true);
    EXPECT_EQ(record.pieces[0].id, record.pieces[1].id);
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
