#include <memory>

#include "host/open_graphs.h"
#include "host/values.h"

namespace pyc::host {
namespace {

// Runs Loop(trips, "", carried) with this body in a session.
struct Ran {
  DynValue carried;
  session::SessionStats stats;
};
Result<Ran> run(std::shared_ptr<const OpenGraph> body, int64_t trips, DynValue carried) {
  OpenNode loop = node("Loop", {0, open::kAbsentId, 1}, {2});
  loop.attrs["body"] = std::move(body);
  const auto main = graph_of(3, {0, 1}, {2}, {loop});
  PYC_ASSIGN(const auto session, session_of(main));
  const std::vector<DynValue> inputs{DynValue::of_int(trips), std::move(carried)};
  PYC_ASSIGN(std::vector<DynValue> outputs, session->run(inputs));
  return Ran{outputs[0], session->stats()};
}

TEST(SessionLoop, IterationsOfOneTypeShareOneProgram) {
  // (i, going, x) -> (going, x + i)
  const auto body = graph_of(4, {0, 1, 2}, {1, 3}, {node("Add", {2, 0}, {3})});
  const auto ran = run(body, 100, ints({1}, {0}));
  ASSERT_TRUE(ran.ok()) << ran.status().to_string();
  expect_value(ran->carried, ints({1}, {4950}));
  EXPECT_EQ(ran->stats.segments_compiled, 1);
  EXPECT_EQ(ran->stats.segments_run, 100);
}

TEST(SessionLoop, AGrowingSequenceIsOneType) {
  // (i, going, s) -> (going, s + [i + i])
  const auto body = graph_of(5, {0, 1, 2}, {1, 4},
                             {node("Add", {0, 0}, {3}), node("SequenceInsert", {2, 3}, {4})});
  const auto ran = run(body, 50, DynValue::of_items({}));
  ASSERT_TRUE(ran.ok()) << ran.status().to_string();
  ASSERT_EQ(ran->carried.items->size(), 50U);
  expect_value(ran->carried.items->back(), ints({}, {98}));
  EXPECT_EQ(ran->stats.segments_compiled, 1);
}

TEST(SessionLoop, AGrowingTensorIsCompiledForEveryShape) {
  // (i, going, x) -> (going, concat(x, [7]))
  OpenNode join = node("Concat", {2, 3}, {4});
  join.attrs["axis"] = int64_t{0};
  auto body = graph_of(5, {0, 1, 2}, {1, 4}, {join});
  body->values[3].constant = ints({1}, {7});
  const auto ran = run(body, 40, ints({1}, {7}));
  ASSERT_TRUE(ran.ok()) << ran.status().to_string();
  EXPECT_EQ(ran->carried.shape, (Ints{41}));
  EXPECT_EQ(ran->stats.segments_compiled, 40);
}

TEST(SessionLoop, TheConditionOfAnIfPicksTheRegion) {
  // (c, x) -> if c: x + x else: x
  const auto yes = graph_of(2, {}, {1}, {node("Add", {0, 0}, {1})});
  yes->captures = {{1, 0}};
  const auto no = graph_of(1, {}, {0}, {});
  no->captures = {{1, 0}};
  OpenNode choice = node("If", {0}, {2});
  choice.attrs["then_branch"] = std::shared_ptr<const OpenGraph>(yes);
  choice.attrs["else_branch"] = std::shared_ptr<const OpenGraph>(no);
  const auto main = graph_of(3, {0, 1}, {2}, {choice});
  auto session = session_of(main);
  ASSERT_TRUE(session.ok());
  for (const bool taken : {true, false, true}) {
    const std::vector<DynValue> inputs{DynValue::of_bool(taken), ints({1}, {3})};
    const auto out = (*session)->run(inputs);
    ASSERT_TRUE(out.ok()) << out.status().to_string();
    expect_value((*out)[0], ints({1}, {taken ? 6 : 3}));
  }
}

}  // namespace
}  // namespace pyc::host
