// What a run holds in values: counted, shown, and ended at its limit.

#include <algorithm>
#include <memory>
#include <thread>

#include "host/open_graphs.h"
#include "host/values.h"

namespace pyc::host {
namespace {

constexpr int64_t kKiB = 1024;

// Loop(trips, "", carried) with this body.
Result<std::unique_ptr<session::Session>> loop_of(std::shared_ptr<const OpenGraph> body,
                                                  driver::CompileOptions options = {}) {
  OpenNode loop = node("Loop", {0, open::kAbsentId, 1}, {2});
  loop.name = "loop";
  loop.attrs["body"] = std::move(body);
  options.device = "reference";
  options.cache = false;
  return session::Session::create(graph_of(3, {0, 1}, {2}, {loop}), options);
}

driver::CompileOptions limited(int64_t bytes) {
  driver::CompileOptions options;
  options.value_limit = bytes;
  return options;
}

OpenNode named(OpenNode n, std::string name) {
  n.name = std::move(name);
  return n;
}

// (i, going, x) -> (going, concat(x, [7]))
std::shared_ptr<const OpenGraph> growing() {
  OpenNode join = named(node("Concat", {2, 3}, {4}), "join");
  join.attrs["axis"] = int64_t{0};
  auto body = graph_of(5, {0, 1, 2}, {1, 4}, {join});
  body->values[3].constant = ints({1}, {7});
  return body;
}

// (i, going, x) -> (going, concat(x, x))
std::shared_ptr<const OpenGraph> doubling() {
  OpenNode join = named(node("Concat", {2, 2}, {3}), "double");
  join.attrs["axis"] = int64_t{0};
  return graph_of(4, {0, 1, 2}, {1, 3}, {join});
}

// Runs far too many trips: refused, with this node and these words. Then a few.
void expect_ends(session::Session& session, const DynValue& carried, const std::string& node,
                 const std::string& words) {
  const std::vector<DynValue> many{DynValue::of_int(1 << 20), carried};
  runtime::RunStats stats;
  const auto refused = session.run(many, &stats);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kBudgetExceeded) << refused.status().to_string();
  EXPECT_EQ(refused.status().node(), node);
  EXPECT_NE(refused.status().message().find(words), std::string::npos)
      << refused.status().message();
  EXPECT_EQ(stats.value_bytes, 0);
  EXPECT_GT(stats.value_peak_bytes, 0);
  EXPECT_EQ(session.refusals().size(), 1U);
  const std::vector<DynValue> few{DynValue::of_int(2), carried};
  EXPECT_TRUE(session.run(few).ok());
}

TEST(SessionValues, ALoopThatDoublesATensorEnds) {
  const auto session = loop_of(doubling(), limited(64 * kKiB));
  ASSERT_TRUE(session.ok());
  // 8, 16, …, 32 KiB are given; carried and condition are held when 64 KiB are asked.
  expect_ends(**session, ints({1}, {1}), "double",
              "onnx.Loop 'loop': onnx.Concat 'double': asks for 65536 bytes, the run holds 32769 "
              "bytes of values, the value limit is 65536");
}

TEST(SessionValues, ALoopThatDoublesStringsEnds) {
  const auto session = loop_of(doubling(), limited(64 * kKiB));
  ASSERT_TRUE(session.ok());
  expect_ends(**session, texts({1}, {"abc"}), "double", "the value limit is 65536");
  OpenNode join = named(node("StringConcat", {2, 2}, {3}), "text");
  join.op = onnx::find_rule("", "StringConcat", 20);
  ASSERT_NE(join.op, nullptr);
  const auto longer = loop_of(graph_of(4, {0, 1, 2}, {1, 3}, {join}), limited(64 * kKiB));
  ASSERT_TRUE(longer.ok());
  expect_ends(**longer, texts({1}, {"abc"}), "text", "the value limit is 65536");
}

TEST(SessionValues, ALoopThatLengthensASequenceEnds) {
  // (i, going, s) -> (going, s + [i])
  const auto body =
      graph_of(4, {0, 1, 2}, {1, 3}, {named(node("SequenceInsert", {2, 0}, {3}), "insert")});
  const auto session = loop_of(body, limited(64 * kKiB));
  ASSERT_TRUE(session.ok());
  expect_ends(**session, DynValue::of_items({}), "insert", "the value limit is 65536");
}

TEST(SessionValues, StackedOutputsEnd) {
  // (i, going, x) -> (going, x, x + i)
  const auto body = graph_of(4, {0, 1, 2}, {1, 2, 3}, {named(node("Add", {2, 0}, {3}), "add")});
  OpenNode loop = named(node("Loop", {0, open::kAbsentId, 1}, {2, 3}), "loop");
  loop.attrs["body"] = std::shared_ptr<const OpenGraph>(body);
  driver::CompileOptions options = limited(64 * kKiB);
  options.device = "reference";
  const auto session = session::Session::create(graph_of(4, {0, 1}, {2, 3}, {loop}), options);
  ASSERT_TRUE(session.ok());
  expect_ends(**session, ints({100}, Ints(100, 1)), "add", "asks for 800 bytes");
}

TEST(SessionValues, OneContentManyTimesIsHeldOnceAndJoinedAtItsPrice) {
  // (s, x) -> concat of a sequence of 64 times x
  std::vector<OpenNode> nodes{node("SequenceConstruct", std::vector<OpenId>(64, 0), {1}),
                              named(node("ConcatFromSequence", {1}, {2}), "join")};
  nodes[1].attrs["axis"] = int64_t{0};
  driver::CompileOptions options = limited(64 * kKiB);
  options.device = "reference";
  const auto session = session::Session::create(graph_of(3, {0}, {2}, nodes), options);
  ASSERT_TRUE(session.ok());
  const std::vector<DynValue> inputs{ints({512}, Ints(512, 1))};
  const auto refused = (*session)->run(inputs);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().node(), "join");
  const auto expected =
      "onnx.ConcatFromSequence 'join': i64[32768]: asks for 262144 bytes, the run holds " +
      std::to_string(64 * sizeof(DynValue)) + " bytes of values, the value limit is 65536";
  EXPECT_EQ(refused.status().message(), expected);
}

TEST(SessionValues, TheMemoryBudgetIsALimitToo) {
  driver::CompileOptions options = limited(1 << 30);
  options.memory_budget = 64 * kKiB;
  const auto session = loop_of(doubling(), options);
  ASSERT_TRUE(session.ok());
  const std::vector<DynValue> inputs{DynValue::of_int(40), texts({1}, {"abc"})};
  const auto refused = (*session)->run(inputs);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kBudgetExceeded);
  EXPECT_NE(refused.status().message().find("the memory budget is 65536"), std::string::npos)
      << refused.status().message();
}

// Of `trips` iterations of growing() on one i64: the last holds what is carried, its condition (1)
// and what it gives; nothing reads its iteration. The first carries the input, which is not
// counted.
int64_t peak_of(int64_t trips) {
  const int64_t carried = trips == 1 ? 0 : 8 * trips;
  return carried + 1 + 8 * (trips + 1);
}

TEST(SessionValues, StatisticsAreExact) {
  const auto session = loop_of(growing());
  ASSERT_TRUE(session.ok());
  for (const int64_t trips : {1, 2, 3, 10}) {
    const std::vector<DynValue> inputs{DynValue::of_int(trips), ints({1}, {7})};
    runtime::RunStats stats;
    ASSERT_TRUE((*session)->run(inputs, &stats).ok());
    EXPECT_EQ(stats.value_peak_bytes, peak_of(trips));
    EXPECT_EQ(stats.value_bytes, 8 * (trips + 1));
  }
}

TEST(SessionValues, WhatNothingReadsAnyMoreIsLetGo) {
  // NonZero ends a segment each time.
  const auto cast = [](OpenId from, OpenId to) {
    OpenNode n = node("Cast", {from}, {to});
    n.attrs["to"] = int64_t{1};
    return n;
  };
  const auto chain = graph_of(7, {0}, {6},
                              {node("NonZero", {0}, {1}), cast(1, 2), node("NonZero", {2}, {3}),
                               cast(3, 4), node("NonZero", {4}, {5}), cast(5, 6)});
  const auto session = session_of(chain);
  ASSERT_TRUE(session.ok());
  const std::vector<DynValue> inputs{floats({1000}, std::vector<double>(1000, 1))};
  runtime::RunStats stats;
  const auto out = (*session)->run(inputs, &stats);
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  // i64[1,1000], f32[1,1000], i64[2,999], f32[2,999], i64[2,999], f32[2,999]: never more than two.
  EXPECT_EQ(stats.value_peak_bytes, 2 * 999 * (8 + 4));
  EXPECT_EQ(stats.value_bytes, 2 * 999 * 4);
}

TEST(SessionValues, RunsAtTheSameTimeHaveTheirOwnMeters) {
  const auto session = loop_of(growing(), limited(peak_of(20)));
  ASSERT_TRUE(session.ok());
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(8);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      // Each of them as much as one run may hold; every second one more.
      const int64_t trips = t % 2 == 0 ? 20 : 21;
      const std::vector<DynValue> inputs{DynValue::of_int(trips), ints({1}, {7})};
      for (int i = 0; i < 5; ++i) {
        runtime::RunStats stats;
        const auto out = (*session)->run(inputs, &stats);
        const bool fits = trips == 20;
        if (out.ok() != fits) wrong[t] = fits ? out.status().to_string() : "not refused";
        if (fits && stats.value_peak_bytes != peak_of(20)) wrong[t] = "another peak";
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) EXPECT_EQ(w, "");
}

}  // namespace
}  // namespace pyc::host
