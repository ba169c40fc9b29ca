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
  TracePace& large = trace.add_lane(TraceLog::kMostParts - 1, 1);
  TracePace& small = trace.add_lane(1, 1);
  EXPECT_NE(trace.begin_run(large), nullptr);
  EXPECT_NE(trace.begin_run(small), nullptr);
  EXPECT_EQ(trace.begin_run(small), nullptr);
  EXPECT_EQ(trace.begin_run(trace.add_lane(TraceLog::kMostParts + 1, 1)), nullptr);
  EXPECT_EQ(trace.record().runs_left_out, 2);

  TraceLog many;
  many.add_steps(nullptr, {});
  TracePace& pace = many.add_lane(0, 1);
  for (size_t i = 0; i < TraceLog::kMostRuns; ++i) ASSERT_NE(many.begin_run(pace), nullptr);
  EXPECT_EQ(many.begin_run(pace), nullptr);
  EXPECT_EQ(many.record().runs_left_out, 1);
}

// Runs of so many ticks each; how many of them were recorded.
int recorded(TraceLog& trace, TracePace& pace, int runs, uint64_t length) {
  int count = 0;
  for (int i = 0; i < runs; ++i) {
    RunTicks* run = trace.begin_run(pace);
    if (run == nullptr) continue;
    run->start = 1000;
    TraceLog::end_run(pace, *run, run->start + length);
    ++count;
  }
  return count;
}

TEST(Trace, OfShortRunsSomeAreRecordedAndTheOthersCounted) {
  constexpr int kFirst = TraceLog::kFirstRuns;
  TraceLog trace;
  trace.add_steps(nullptr, {});
  TracePace& pace = trace.add_lane(2, 1);
  ASSERT_GT(pace.worth, 12u);
  const uint64_t fourth = pace.worth / 4 + 1;  // of what is long enough: one of four
  EXPECT_EQ(recorded(trace, pace, kFirst, fourth), kFirst) << "whatever they cost";
  EXPECT_EQ(recorded(trace, pace, 4000, fourth), 1000);
  const TraceRecord record = trace.record();
  EXPECT_EQ(record.runs.size(), kFirst + 1000u);
  EXPECT_EQ(record.runs_passed_over, 3000);
  EXPECT_EQ(record.runs_left_out, 0);
  EXPECT_EQ(record.runs[kFirst].passed_over, 0);
  EXPECT_EQ(record.runs[kFirst + 1].passed_over, 3);
}

TEST(Trace, RunsThatAreLongEnoughAreAllRecorded) {
  TraceLog trace;
  trace.add_steps(nullptr, {});
  TracePace& pace = trace.add_lane(1, 1);
  EXPECT_EQ(recorded(trace, pace, 200, pace.worth + 1), 200);
  EXPECT_EQ(trace.record().runs_passed_over, 0);
  // Those of another lane have a pace of their own, and one disturbed run does not stay.
  TracePace& other = trace.add_lane(1, 1);
  EXPECT_LT(recorded(trace, other, 200, 1), 40);
  EXPECT_EQ(recorded(trace, pace, 200, pace.worth + 1), 200);
  EXPECT_EQ(recorded(trace, pace, 1, 1), 1);
  EXPECT_GE(recorded(trace, pace, 2000, pace.worth + 1), 1000);
}

TEST(Trace, StepsOfSeveralThreadsAreWorthLongerRuns) {
  TraceLog trace;
  trace.add_steps(nullptr, {});
  EXPECT_GT(trace.add_lane(10, 2).worth, trace.add_lane(10, 1).worth);
  EXPECT_GT(trace.add_lane(10, 1).worth, trace.add_lane(0, 1).worth);
}

TEST(Trace, EveryRunIsRecordedWhereThatIsAsked) {
  TraceLog trace;
  trace.add_steps(nullptr, {});
  TracePace& pace = trace.add_lane(1, 2);
  EXPECT_LT(recorded(trace, pace, 1000, 1), 1000);
  const int64_t passed_over = trace.record().runs_passed_over;
  EXPECT_GT(passed_over, 0);
  trace.record_every_run();
  EXPECT_EQ(recorded(trace, pace, 1000, 1), 1000);
  EXPECT_EQ(trace.record().runs_passed_over, passed_over);
}

TEST(Trace, RunsHaveTheTimesOfTheClock) {
  TraceLog trace;
  trace.add_steps(nullptr, {});
  TracePace& pace = trace.add_lane(2, 1);
  const int64_t before = now_ns();
  RunTicks* run = trace.begin_run(pace);
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
  TracePace& pace = trace.add_lane(3, 2);
  RunTicks* run = trace.begin_run(pace);
  ASSERT_NE(run, nullptr);
  ASSERT_EQ(run->parts.size(), 6u);
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
  TracePace& pace = trace.add_lane(0, 1);
  trace.add_span("before", now_ns());
  trace.stop();
  trace.add_span("after", now_ns());
  EXPECT_EQ(trace.begin_run(pace), nullptr);
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
      TracePace& pace = trace.add_lane(1, 1);
      for (int i = 0; i < 100; ++i) {
        trace.add_span("work", now_ns());
        if (RunTicks* run = trace.begin_run(pace)) run->end.store(ticks());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trace.record().spans.size(), 400u);
  EXPECT_EQ(trace.record().runs.size(), 400u);
}

}  // namespace
}  // namespace pyc
