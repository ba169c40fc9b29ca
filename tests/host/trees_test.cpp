#include "host/trees.h"

#include <cmath>

#include "host/scores.h"
#include "host/values.h"

namespace pyc::host {
namespace {

// One node: x[0] <= 1 votes 10 for target 0, else 20 for target 1.
Forest stump() {
  Forest f;
  f.nodes.resize(3);
  f.nodes[0].mode = Forest::Mode::kLeq;
  f.nodes[0].split = 1.0;
  f.nodes[0].if_true = 1;
  f.nodes[0].if_false = 2;
  f.votes = {{}, {{0, 10.0}}, {{1, 20.0}}};
  f.roots = {0};
  f.targets = 2;
  return f;
}

TEST(Trees, Votes) {
  const DynValue x = floats({3, 1}, {0, 5, NAN});
  const auto scores = run_forest(stump(), x, Aggregate::kSum, {});
  ASSERT_TRUE(scores.ok());
  EXPECT_EQ(*scores, (std::vector<double>{10, 0, 0, 20, 0, 20}));
  const auto based = run_forest(stump(), x, Aggregate::kSum, {1.0});
  EXPECT_EQ((*based)[1], 1.0);
}

TEST(Trees, BrokenTreesAreRefused) {
  const DynValue x = floats({1, 1}, {0});
  Forest circle = stump();
  circle.nodes[0].if_true = 0;
  expect_refused(run_forest(circle, x, Aggregate::kSum, {}), Code::kInvalidArgument);
  Forest away = stump();
  away.nodes[0].if_true = 7;
  expect_refused(run_forest(away, x, Aggregate::kSum, {}), Code::kInvalidArgument);
  Forest target = stump();
  target.votes[1][0].target = 2;
  expect_refused(run_forest(target, x, Aggregate::kSum, {}), Code::kInvalidArgument);
  Forest feature = stump();
  feature.nodes[0].feature = 1;
  expect_refused(run_forest(feature, x, Aggregate::kSum, {}), Code::kInvalidArgument);
  expect_refused(run_forest(stump(), floats({1}, {0}), Aggregate::kSum, {}), Code::kRankMismatch);
}

TEST(Trees, PostTransforms) {
  std::vector<double> scores{0, 0, 1, 1};
  post_transform(PostTransform::kSoftmax, 2, scores);
  EXPECT_EQ(scores, (std::vector<double>{0.5, 0.5, 0.5, 0.5}));
  std::vector<double> logits{0};
  post_transform(PostTransform::kLogistic, 1, logits);
  EXPECT_EQ(logits[0], 0.5);
  expect_refused(post_transform_of("?"), Code::kInvalidArgument);
}

TEST(Scores, LinearAndLabels) {
  const DynValue x = floats({2, 2}, {1, 2, 3, 4});
  const auto scores = linear_scores(x, {1, 0, 0, -1}, {0, 10}, 2);
  ASSERT_TRUE(scores.ok());
  EXPECT_EQ(*scores, (std::vector<double>{1, 8, 3, 6}));
  expect_value(best_labels(*scores, {7, 9}, {}), ints({2}, {9, 9}));
  expect_value(best_labels({2, 1}, {}, {"a", "b"}), texts({1}, {"a"}));
  expect_refused(linear_scores(x, {1, 0, 0}, {}, 2), Code::kSizeMismatch);
  expect_refused(best_labels(*scores, {}, {}), Code::kInvalidArgument);
}

}  // namespace
}  // namespace pyc::host
