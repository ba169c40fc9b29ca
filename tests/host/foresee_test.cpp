// Programs made ahead of all runs: through conditions and loops, as far as types tell.

#include "host/open_graphs.h"
#include "host/values.h"

namespace pyc::host {
namespace {

using open::kAbsentId;

DynValue type(DType dtype, Ints shape) {
  DynValue out;
  out.kind = DynValue::Kind::kTensor;
  out.dtype = dtype;
  out.shape = std::move(shape);
  return out;
}

// Runs the session on these inputs: nothing is compiled any more, and this comes out.
void expect_runs(session::Session& session, const std::vector<DynValue>& inputs,
                 const DynValue& expected) {
  const int64_t before = session.stats().segments_compiled;
  const auto found = session.run(inputs);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  expect_value(found->at(0), expected);
  EXPECT_EQ(session.stats().segments_compiled, before);
}

// A region that captures value `outer` and returns op(x, x).
std::shared_ptr<const OpenGraph> twice(std::string_view op, OpenId outer) {
  auto region = graph_of(2, {}, {1}, {node(op, {0, 0}, {1})});
  region->captures.push_back({.outer = outer, .inner = 0});
  return region;
}

// (condition, x) -> abs(condition ? x + x : x · x)
std::shared_ptr<OpenGraph> branches() {
  OpenNode branch = node("If", {0}, {2});
  branch.attrs["then_branch"] = twice("Add", 1);
  branch.attrs["else_branch"] = twice("Mul", 1);
  return graph_of(4, {0, 1}, {3}, {branch, node("Abs", {2}, {3})});
}

TEST(Foresee, BothSidesOfACondition) {
  const auto session = session_of(branches());
  ASSERT_TRUE(session.ok());
  const auto all = (*session)->foresee(std::vector{type(DType::kBool, {}), type(DType::kF32, {2})});
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  EXPECT_TRUE(*all);
  EXPECT_EQ((*session)->stats().segments_compiled, 2);
  expect_runs(**session, {bools({}, {1}), floats({2}, {-3, 4})}, floats({2}, {6, 8}));
  expect_runs(**session, {bools({}, {0}), floats({2}, {-3, 4})}, floats({2}, {9, 16}));
}

// Loop(trips, "", x) with the body x + x, then abs.
std::shared_ptr<OpenGraph> loop() {
  OpenNode repeat = node("Loop", {0, kAbsentId, 1}, {2});
  repeat.attrs["body"] =
      std::shared_ptr<const OpenGraph>(graph_of(4, {0, 1, 2}, {1, 3}, {node("Add", {2, 2}, {3})}));
  return graph_of(4, {0, 1}, {3}, {repeat, node("Abs", {2}, {3})});
}

TEST(Foresee, ALoopThatKeepsItsTypes) {
  const auto session = session_of(loop());
  ASSERT_TRUE(session.ok());
  const auto all = (*session)->foresee(std::vector{type(DType::kI64, {}), type(DType::kF32, {2})});
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  EXPECT_TRUE(*all);
  EXPECT_EQ((*session)->stats().segments_compiled, 2);
  expect_runs(**session, {DynValue::of_int(3), floats({2}, {-1, 2})}, floats({2}, {8, 16}));
  expect_runs(**session, {DynValue::of_int(0), floats({2}, {-1, 2})}, floats({2}, {1, 2}));
}

// What is carried grows: its type behind the loop is not known, the rest is left to runs.
TEST(Foresee, ALoopThatGrowsIsLeftToRuns) {
  OpenNode join = node("Concat", {2, 2}, {3});
  join.attrs["axis"] = int64_t{0};
  OpenNode repeat = node("Loop", {0, kAbsentId, 1}, {2});
  repeat.attrs["body"] = std::shared_ptr<const OpenGraph>(graph_of(4, {0, 1, 2}, {1, 3}, {join}));
  const auto session = session_of(graph_of(4, {0, 1}, {3}, {repeat, node("Abs", {2}, {3})}));
  ASSERT_TRUE(session.ok());
  const auto all = (*session)->foresee(std::vector{type(DType::kI64, {}), type(DType::kF32, {1})});
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  EXPECT_FALSE(*all);
  const auto found = (*session)->run(std::vector{DynValue::of_int(2), floats({1}, {-1})});
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  expect_value(found->at(0), floats({4}, {1, 1, 1, 1}));
}

// Too long to be written out: (sum, x[t]) -> (sum + x[t], sum + x[t]).
TEST(Foresee, AScanOfKnownLength) {
  OpenNode scan = node("Scan", {0, 1}, {2, 3});
  scan.attrs["num_scan_inputs"] = int64_t{1};
  scan.attrs["body"] = std::shared_ptr<const OpenGraph>(
      graph_of(4, {0, 1}, {2, 3}, {node("Add", {0, 1}, {2}), node("Add", {0, 1}, {3})}));
  const auto session = session_of(graph_of(5, {0, 1}, {4, 2}, {scan, node("Abs", {3}, {4})}));
  ASSERT_TRUE(session.ok());
  const auto all =
      (*session)->foresee(std::vector{type(DType::kF32, {1}), type(DType::kF32, {600, 1})});
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  EXPECT_TRUE(*all);
  std::vector<double> sums;
  for (int t = 1; t <= 600; ++t) sums.push_back(t);
  expect_runs(**session, {floats({1}, {0}), floats({600, 1}, std::vector<double>(600, 1))},
              floats({600, 1}, sums));
}

// A shape that is the content of an input decides: nothing is made.
TEST(Foresee, ContentsThatAreNoConditionAreLeftToRuns) {
  const auto session = session_of(graph_of(3, {0, 1}, {2}, {node("Reshape", {0, 1}, {2})}));
  ASSERT_TRUE(session.ok());
  const auto all = (*session)->foresee(std::vector{type(DType::kF32, {4}), type(DType::kI64, {2})});
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  EXPECT_FALSE(*all);
  EXPECT_EQ((*session)->stats().segments_compiled, 0);
}

}  // namespace
}  // namespace pyc::host
