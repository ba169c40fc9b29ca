#include "host/sequence.h"

#include "host/values.h"

namespace pyc::host {
namespace {

DynValue three() { return DynValue::of_items({ints({1}, {1}), ints({2}, {2, 2}), ints({}, {3})}); }

TEST(Sequence, PositionsCountFromBothEnds) {
  expect_value(sequence_at(three(), -1), ints({}, {3}));
  expect_value(sequence_at(three(), 0), ints({1}, {1}));
  expect_refused(sequence_at(three(), 3), Code::kInvalidArgument);
  expect_refused(sequence_at(three(), -4), Code::kInvalidArgument);
  expect_refused(sequence_at(ints({1}, {1}), 0), Code::kDtypeMismatch);
}

TEST(Sequence, InsertAndErase) {
  const auto longer = sequence_insert(three(), ints({}, {9}), std::nullopt);
  ASSERT_TRUE(longer.ok());
  expect_value(sequence_at(*longer, 3), ints({}, {9}));
  const auto shorter = sequence_erase(*longer, 0);
  ASSERT_TRUE(shorter.ok());
  EXPECT_EQ(shorter->items->size(), 3U);
  expect_refused(sequence_insert(three(), floats({}, {9}), 0), Code::kDtypeMismatch);
  expect_refused(sequence_insert(three(), ints({}, {9}), 4), Code::kInvalidArgument);
  expect_refused(sequence_erase(DynValue::of_items({}), std::nullopt), Code::kInvalidArgument);
}

TEST(Sequence, PartsMustAddUp) {
  const DynValue x = ints({2, 3}, {0, 1, 2, 3, 4, 5});
  const auto parts = split_to_sequence(x, 1, {2, 1});
  ASSERT_TRUE(parts.ok());
  expect_value(sequence_at(*parts, 0), ints({2, 2}, {0, 1, 3, 4}));
  expect_value(sequence_at(*parts, 1), ints({2, 1}, {2, 5}));
  expect_refused(split_to_sequence(x, 1, {2}), Code::kInvalidArgument);
  expect_refused(split_to_sequence(x, 1, {4, -1}), Code::kInvalidArgument);
  expect_refused(split_to_sequence(ints({}, {1}), 0, {1}), Code::kRankMismatch);
}

}  // namespace
}  // namespace pyc::host
