#include "host/open_graphs.h"
#include "host/values.h"

namespace pyc::host {
namespace {

Result<DynValue> run_one(OpenNode n, const std::vector<DynValue>& inputs) {
  const auto outputs = static_cast<OpenId>(inputs.size());
  std::vector<OpenId> in;
  for (OpenId i = 0; i < outputs; ++i) in.push_back(i);
  n.inputs = in;
  n.outputs = {outputs};
  PYC_ASSIGN(const auto session, session_of(graph_of(outputs + 1, in, {outputs}, {n})));
  PYC_ASSIGN(const std::vector<DynValue> results, session->run(inputs));
  return results[0];
}

TEST(SessionStrings, MoveAsNumbersDo) {
  const DynValue x = texts({2, 2}, {"a", "b", "c", "d"});
  expect_value(run_one(node("Transpose", {}, {}), {x}), texts({2, 2}, {"a", "c", "b", "d"}));
  expect_value(run_one(node("Reshape", {}, {}), {x, ints({1}, {-1})}),
               texts({4}, {"a", "b", "c", "d"}));
  expect_value(run_one(node("Gather", {}, {}), {x, ints({}, {1})}), texts({2}, {"c", "d"}));
  expect_value(run_one(node("Where", {}, {}),
                       {bools({2}, {1, 0}), texts({2}, {"x", "y"}), texts({2}, {"z", "w"})}),
               texts({2}, {"x", "w"}));
  OpenNode join = node("Concat", {}, {});
  join.attrs["axis"] = int64_t{0};
  expect_value(run_one(join, {x, texts({1, 2}, {"e", "f"})}),
               texts({3, 2}, {"a", "b", "c", "d", "e", "f"}));
}

TEST(SessionStrings, ShapesAreNumbers) {
  expect_value(run_one(node("Shape", {}, {}), {texts({3, 1}, {"a", "b", "c"})}), ints({2}, {3, 1}));
  expect_value(run_one(node("Size", {}, {}), {texts({3}, {"a", "b", "c"})}), ints({}, {3}));
}

TEST(SessionStrings, StringsAndNumbersDoNotMix) {
  OpenNode join = node("Concat", {}, {});
  join.attrs["axis"] = int64_t{0};
  expect_refused(run_one(join, {texts({1}, {"a"}), ints({1}, {0})}), Code::kDtypeMismatch);
  expect_refused(run_one(node("Add", {}, {}), {texts({1}, {"a"}), ints({1}, {0})}),
                 Code::kUnsupported);
  expect_refused(run_one(node("Transpose", {}, {}), {DynValue::of_items({})}),
                 Code::kDtypeMismatch);
}

TEST(SessionStrings, NumbersThatWaitForAShapeAreClosed) {
  // reshape(x, s + s), which is known only after the first stage
  const auto graph =
      graph_of(4, {0, 1}, {3}, {node("Add", {1, 1}, {2}), node("Reshape", {0, 2}, {3})});
  const auto session = session_of(graph);
  ASSERT_TRUE(session.ok());
  const std::vector<DynValue> inputs{ints({4}, {1, 2, 3, 4}), ints({2}, {1, 1})};
  const auto out = (*session)->run(inputs);
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  expect_value((*out)[0], ints({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ((*session)->stats().host_calls, 0);
}

}  // namespace
}  // namespace pyc::host
