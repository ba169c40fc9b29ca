#include "host/select.h"

#include <cmath>

#include "host/suppression.h"
#include "host/values.h"

namespace pyc::host {
namespace {

TEST(Select, Nonzero) {
  expect_value(nonzero(floats({2, 2}, {1, 0, 0, NAN})), ints({2, 2}, {0, 1, 0, 1}));
  expect_value(nonzero(floats({}, {1})), ints({0, 1}, {}));
  expect_value(nonzero(floats({0}, {})), ints({1, 0}, {}));
  expect_refused(nonzero(DynValue()), Code::kDtypeMismatch);
}

TEST(Select, Compress) {
  const DynValue x = ints({3, 2}, {1, 2, 3, 4, 5, 6});
  expect_value(compress(x, bools({2}, {0, 1}), 0), ints({1, 2}, {3, 4}));
  expect_value(compress(x, bools({3}, {1, 0, 1}), std::nullopt), ints({2}, {1, 3}));
  expect_refused(compress(x, bools({3}, {1, 0, 1}), 1), Code::kInvalidArgument);
  expect_refused(compress(x, bools({1, 2}, {0, 1}), 0), Code::kRankMismatch);
  expect_refused(compress(x, bools({2}, {0, 1}), 5), Code::kInvalidArgument);
}

TEST(Select, UniqueInBothOrders) {
  const DynValue x = floats({6}, {2, 1, 1, 3, 4, 3});
  const auto sorted = unique(x, std::nullopt, true);
  ASSERT_TRUE(sorted.ok());
  expect_value(sorted->values, floats({4}, {1, 2, 3, 4}));
  expect_value(sorted->first, ints({4}, {1, 0, 3, 4}));
  expect_value(sorted->inverse, ints({6}, {1, 0, 0, 2, 3, 2}));
  expect_value(sorted->counts, ints({4}, {2, 1, 2, 1}));
  const auto met = unique(x, std::nullopt, false);
  ASSERT_TRUE(met.ok());
  expect_value(met->values, floats({4}, {2, 1, 3, 4}));
  expect_value(met->inverse, ints({6}, {0, 1, 1, 2, 3, 2}));
}

TEST(Select, UniqueAlongAnAxis) {
  const auto rows = unique(ints({3, 2}, {1, 0, 1, 0, 0, 5}), 0, true);
  ASSERT_TRUE(rows.ok());
  expect_value(rows->values, ints({2, 2}, {0, 5, 1, 0}));
  const auto strings = unique(texts({3}, {"b", "a", "b"}), -1, true);
  ASSERT_TRUE(strings.ok());
  expect_value(strings->values, texts({2}, {"a", "b"}));
  const auto nothing = unique(ints({0}, {}), std::nullopt, true);
  ASSERT_TRUE(nothing.ok());
  expect_value(nothing->values, ints({0}, {}));
}

TEST(Select, LargeUnsignedNumbersAreLarge) {
  const Ints one_and_most{-1, 1};
  const DynValue x = *tensor_of(DType::kU64, {2}, one_and_most);
  const auto found = unique(x, std::nullopt, true);
  ASSERT_TRUE(found.ok());
  expect_value(found->first, ints({2}, {1, 0}));
}

TEST(Suppression, KeepsTheBestOfOverlappingBoxes) {
  SuppressionSpec spec;
  spec.boxes = floats({1, 3, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 10, 1, 11});
  spec.scores = floats({1, 1, 3}, {0.9, 0.75, 0.6});
  spec.most = 3;
  spec.overlap = 0.5;
  expect_value(suppress_overlaps(spec), ints({2, 3}, {0, 0, 0, 0, 0, 2}));
  spec.score = 0.8;
  expect_value(suppress_overlaps(spec), ints({1, 3}, {0, 0, 0}));
  spec.most = 0;
  expect_value(suppress_overlaps(spec), ints({0, 3}, {}));
  spec.scores = floats({1, 1, 2}, {0.9, 0.75});
  expect_refused(suppress_overlaps(spec), Code::kShapeMismatch);
}

}  // namespace
}  // namespace pyc::host
