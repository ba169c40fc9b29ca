#include "host/elements.h"

#include "host/values.h"

namespace pyc::host {
namespace {

TEST(Elements, TakeKeepsOtherAxes) {
  const Ints at{2, 0};
  expect_value(take(ints({2, 3}, {0, 1, 2, 3, 4, 5}), 1, at), ints({2, 2}, {2, 0, 5, 3}));
  expect_value(take(texts({3}, {"a", "b", "c"}), 0, at), texts({2}, {"c", "a"}));
}

TEST(Elements, TakeRefusesOutOfRange) {
  const Ints at{3};
  expect_refused(take(ints({3}, {0, 1, 2}), 0, at), Code::kInvalidArgument);
}

TEST(Elements, StackAndConcat) {
  const DynValue parts[] = {ints({2}, {1, 2}), ints({2}, {3, 4})};
  expect_value(stack(parts, 0), ints({2, 2}, {1, 2, 3, 4}));
  expect_value(stack(parts, 1), ints({2, 2}, {1, 3, 2, 4}));
  expect_value(concat(parts, 0), ints({4}, {1, 2, 3, 4}));
  const DynValue mixed[] = {ints({2}, {1, 2}), floats({2}, {3, 4})};
  expect_refused(concat(mixed, 0), Code::kShapeMismatch);
  const DynValue strings[] = {texts({1, 2}, {"a", "b"}), texts({1, 1}, {"c"})};
  expect_value(concat(strings, 1), texts({1, 3}, {"a", "b", "c"}));
}

TEST(Elements, BroadcastReads) {
  EXPECT_EQ(*broadcast({2, 1}, {3}), (Ints{2, 3}));
  EXPECT_EQ(broadcast_reads({2, 1}, {2, 3}), (Ints{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(broadcast_reads({3}, {2, 3}), (Ints{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(broadcast_reads({}, {}), (Ints{0}));
  EXPECT_TRUE(broadcast_reads({1}, {0}).empty());
  expect_refused(broadcast({2}, {3}), Code::kShapeMismatch);
}

TEST(Elements, ContentMustBeAsLargeAsTheShape) {
  DynValue wrong = ints({2}, {1, 2});
  wrong.shape = {3};
  EXPECT_EQ(check_array(wrong, "x").code(), Code::kSizeMismatch);
  DynValue strings = texts({1}, {"a"});
  strings.shape = {int64_t{1} << 40};
  EXPECT_EQ(check_array(strings, "x").code(), Code::kBudgetExceeded);
}

TEST(Elements, EmptyTensorsOfHugeDimsCostNothing) {
  DynValue x = floats({0}, {});
  x.shape = {int64_t{1} << 39, 2, 0};
  const Ints at{1};
  const auto one = take(x, 1, at);
  ASSERT_TRUE(one.ok()) << one.status().to_string();
  EXPECT_EQ(one->shape[1], 1);
  const DynValue parts[] = {x, x};
  EXPECT_TRUE(concat(parts, 1).ok());
  x.shape = {int64_t{1} << 39, int64_t{1} << 39, 0};
  EXPECT_EQ(check_array(x, "x").code(), Code::kBudgetExceeded);
}

}  // namespace
}  // namespace pyc::host
