// Many threads on one open model: a run waits for a compile only when it needs that program.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "host/open_graphs.h"
#include "host/values.h"
#include "open/close.h"

namespace pyc::host {
namespace {

using namespace std::chrono_literals;

// Two threads meet: the one that closes a tensor of one element waits until the other is through.
struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  bool closing = false;  // the first thread is inside of its compile
  bool through = false;  // the second has its result
  bool in_time = true;   // the first did not give up waiting for it
};
Meeting* meeting = nullptr;

Status close_twice_and_wait(open::CloseContext& c) {
  if (c.shape(c.input(0)) == ir::Shape{1}) {
    std::unique_lock lock(meeting->mutex);
    meeting->closing = true;
    meeting->changed.notify_all();
    meeting->in_time = meeting->changed.wait_for(lock, 60s, [] { return meeting->through; });
  }
  return c.give(c.op("add", {c.input(0), c.input(0)}));
}

TEST(ConcurrentShapes, ARunDoesNotWaitForTheCompileOfAnotherShape) {
  Meeting here;
  meeting = &here;
  const open::OpenOp twice{.name = "test.Twice", .close = close_twice_and_wait};
  OpenNode n{
      .op = &twice, .name = "twice", .version = 1, .inputs = {0}, .outputs = {1}, .attrs = {}};
  const auto session = session_of(graph_of(2, {0}, {1}, {n}));
  ASSERT_TRUE(session.ok()) << session.status().to_string();

  std::thread first([&] {
    const auto found = (*session)->run(std::vector{floats({1}, {3})});
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    expect_value(found->at(0), floats({1}, {6}));
  });
  {
    std::unique_lock lock(here.mutex);
    ASSERT_TRUE(here.changed.wait_for(lock, 60s, [&] { return here.closing; }));
  }
  const auto found = (*session)->run(std::vector{floats({2}, {1, 2})});
  {
    const std::scoped_lock lock(here.mutex);
    here.through = true;
    here.changed.notify_all();
  }
  first.join();
  EXPECT_TRUE(here.in_time) << "the second run waited for the first one's compile";
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  expect_value(found->at(0), floats({2}, {2, 4}));
}

TEST(ConcurrentShapes, SixtyFourThreadsCompileEightShapesOnceEach) {
  const auto session = session_of(graph_of(2, {0}, {1}, {node("Abs", {0}, {1})}));
  ASSERT_TRUE(session.ok()) << session.status().to_string();
  std::atomic<int> waiting{64};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      const int64_t size = 1 + t % 8;
      const DynValue x = floats({size}, std::vector<double>(static_cast<size_t>(size), -t));
      const DynValue y = floats({size}, std::vector<double>(static_cast<size_t>(size), t));
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      const auto found = (*session)->run(std::vector{x});
      if (!found.ok() || to_doubles(found->at(0)) != to_doubles(y)) ++wrong;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ((*session)->stats().segments_compiled, 8);
}

}  // namespace
}  // namespace pyc::host
