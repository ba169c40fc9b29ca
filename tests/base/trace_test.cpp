#include "base/trace.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"

namespace pyc {
namespace {

TEST(Trace, ThreadsHaveNumbersOfTheirOwn) {
  const int mine = trace_thread();
  EXPECT_EQ(trace_thread(), mine);
  int other = mine;
  std::thread([&] { other = trace_thread(); }).join();
  EXPECT_NE(other, mine);
}

TEST(Trace, RunsBeyondTheLimitAreCountedAndNotRecorded) {
  TraceLog trace;
  trace.add_steps(nullptr, {});
  EXPECT_NE(trace.begin_run(TraceLog::kMostParts - 1), nullptr);
  EXPECT_NE(trace.begin_run(1), nullptr);
  EXPECT_EQ(trace.begin_run(1), nullptr);
  EXPECT_EQ(trace.begin_run(SIZE_MAX), nullptr);
  EXPECT_EQ(trace.record().runs_left_out, 2);

  TraceLog many;
  many.add_steps(nullptr, {});
  for (size_t i = 0; i < TraceLog::kMostRuns; ++i) ASSERT_NE(many.begin_run(0), nullptr);
  EXPECT_EQ(many.begin_run(0), nullptr);
  EXPECT_EQ(many.record().runs_left_out, 1);
}

TEST(Trace, RunsHaveTheTimesOfTheClock) {
  TraceLog trace;
  trace.add_steps(nullptr, {});
  const int64_t before = now_ns();
  RunTicks* run = trace.begin_run(2);
  ASSERT_NE(run, nullptr);
  run->start = ticks();
  run->parts[1] = {3, run->start, ticks()};
  EXPECT_TRUE(trace.record().runs.empty()) << "it is under way";  // one thread, two steps
  const int64_t until = now_ns() + 1'000'000;
  while (now_ns() < until) {
  }
  run->end.store(ticks());
  const int64_t after = now_ns();
  const TraceRecord record = trace.record();
  ASSERT_EQ(record.runs.size(), 1u);
  const TraceRun& seen = record.runs[0];
  constexpr int64_t kApart = 20'000;  // of the moments that both clocks were read at
  EXPECT_GE(seen.start_ns, before - kApart);
  EXPECT_LE(seen.end_ns, after + kApart);
  EXPECT_GE(seen.end_ns - seen.start_ns, 1'000'000 - kApart);
  ASSERT_EQ(seen.parts.size(), 2u);
  EXPECT_EQ(seen.parts[0].thread, -1);
  EXPECT_EQ(seen.parts[1].thread, 3);
  EXPECT_EQ(seen.parts[1].start_ns, seen.start_ns);
  EXPECT_LE(seen.parts[1].end_ns, seen.end_ns);
}

TEST(Trace, PartsAreWrittenByThreadAndReadByStep) {
  TraceLog trace;
  trace.add_steps(nullptr, {});
  RunTicks* run = trace.begin_run(6);
  ASSERT_NE(run, nullptr);
  run->threads = 2;  // three steps
  for (int p = 0; p < 6; ++p) run->parts[static_cast<size_t>(p)].thread = p;
  run->end.store(ticks());
  std::vector<int> threads;
  const TraceRecord record = trace.record();
  for (const TracePart& part : record.runs.at(0).parts) threads.push_back(part.thread);
  EXPECT_EQ(threads, (std::vector<int>{0, 3, 1, 4, 2, 5}));
}

TEST(Trace, NothingIsRecordedOnceItIsStopped) {
  TraceLog trace;
  trace.add_steps(nullptr, {});
  trace.add_span("before", now_ns());
  trace.stop();
  trace.add_span("after", now_ns());
  EXPECT_EQ(trace.begin_run(1), nullptr);
  ASSERT_EQ(trace.record().spans.size(), 1u);
  EXPECT_EQ(trace.record().spans[0].name, "before");
  EXPECT_EQ(trace.record().runs_left_out, 0);
}

TEST(Trace, ManyThreadsWriteToOne) {
  TraceLog trace;
  trace.add_steps(nullptr, {});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        trace.add_span("work", now_ns());
        if (RunTicks* run = trace.begin_run(1)) run->end.store(ticks());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trace.record().spans.size(), 400u);
  EXPECT_EQ(trace.record().runs.size(), 400u);
}

}  // namespace
}  // namespace pyc
