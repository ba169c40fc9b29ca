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
  EXPECT_TRUE(trace.wants_run(TraceLog::kMostParts - 1));
  EXPECT_FALSE(trace.wants_run(2));
  EXPECT_TRUE(trace.wants_run(1));
  EXPECT_FALSE(trace.wants_run(1));
  EXPECT_EQ(trace.record().runs_left_out, 2);
}

TEST(Trace, NothingIsRecordedOnceItIsStopped) {
  TraceLog trace;
  trace.add_span("before", now_ns());
  trace.stop();
  trace.add_span("after", now_ns());
  EXPECT_FALSE(trace.wants_run(1));
  ASSERT_EQ(trace.record().spans.size(), 1u);
  EXPECT_EQ(trace.record().spans[0].name, "before");
  EXPECT_EQ(trace.record().runs_left_out, 0);
}

TEST(Trace, ManyThreadsWriteToOne) {
  TraceLog trace;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        trace.add_span("work", now_ns());
        if (trace.wants_run(1)) trace.add_run(TraceRun());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trace.record().spans.size(), 400u);
  EXPECT_EQ(trace.record().runs.size(), 400u);
}

}  // namespace
}  // namespace pyc
