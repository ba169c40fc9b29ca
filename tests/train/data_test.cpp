// The order of batches, and data that does not fit.

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "train/data.h"
#include "train/options.h"

namespace pyc::train {
namespace {

const std::vector<runtime::IoSpec> kBatch = {{"x", DType::kI64, {3, 2}, 48},
                                             {"target", DType::kF32, {3}, 12}};

// Row r of x is (r, -r), of the target r.
std::vector<io::NamedTensor> rows(int64_t count) {
  NewTensor x = *new_tensor(DType::kI64, {count, 2});
  NewTensor y = *new_tensor(DType::kF32, {count});
  for (int64_t r = 0; r < count; ++r) {
    const int64_t pair[2] = {r, -r};
    const auto label = static_cast<float>(r);
    std::memcpy(x.data + r * 16, &pair[0], 16);
    std::memcpy(y.data + r * 4, &label, 4);
  }
  return {{"x", x.value}, {"target", y.value}};
}

std::vector<int64_t> taken(Dataset& data, int64_t position) {
  const auto views = data.batch(position);
  std::vector<int64_t> out;
  for (size_t i = 0; i < 3; ++i) {
    int64_t pair[2] = {};
    float label = 0;
    std::memcpy(&pair[0], static_cast<std::byte*>(views[0].data) + i * 16, 16);
    std::memcpy(&label, static_cast<std::byte*>(views[1].data) + i * 4, 4);
    EXPECT_EQ(pair[1], -pair[0]);
    EXPECT_EQ(label, static_cast<float>(pair[0]));
    out.push_back(pair[0]);
  }
  return out;
}

TEST(Data, ComesInItsOwnOrderWithoutASeed) {
  auto data = Dataset::create(rows(11), kBatch, std::nullopt);
  ASSERT_TRUE(data.ok()) << data.status().to_string();
  EXPECT_EQ(data->batches(), 3);
  EXPECT_EQ(taken(*data, 0), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(taken(*data, 2), (std::vector<int64_t>{6, 7, 8}));  // 9 and 10 are dropped
  EXPECT_EQ(taken(*data, 3), (std::vector<int64_t>{0, 1, 2}));
}

TEST(Data, IsShuffledAnewInEachPassByTheSeedAlone) {
  auto data = Dataset::create(rows(11), kBatch, 42);
  ASSERT_TRUE(data.ok());
  std::vector<std::vector<int64_t>> first;
  for (int64_t p = 0; p < 6; ++p) first.push_back(taken(*data, p));
  for (int64_t pass = 0; pass < 2; ++pass) {
    std::set<int64_t> seen;
    for (int64_t b = 0; b < 3; ++b) {
      const auto& batch = first[static_cast<size_t>(pass * 3 + b)];
      seen.insert(batch.begin(), batch.end());
    }
    EXPECT_EQ(seen.size(), 9U);  // no row twice
  }
  EXPECT_NE(first[0], first[3]);
  // From any position, in any order, the same; and part of the contract, so that it never changes.
  auto again = Dataset::create(rows(11), kBatch, 42);
  for (const int64_t p : {5, 0, 4, 1}) EXPECT_EQ(taken(*again, p), first[static_cast<size_t>(p)]);
  auto other = Dataset::create(rows(11), kBatch, 43);
  EXPECT_NE(taken(*other, 0), first[0]);
  EXPECT_EQ(first[0], (std::vector<int64_t>{1, 0, 6}));
  EXPECT_EQ(first[3], (std::vector<int64_t>{4, 5, 10}));
}

TEST(Data, HasADigestOfAllItHolds) {
  const auto data = Dataset::create(rows(11), kBatch, 1);
  auto turned = rows(11);
  std::swap(turned[0], turned[1]);
  EXPECT_EQ(Dataset::create(turned, kBatch, 2)->digest(), data->digest());
  EXPECT_NE(Dataset::create(rows(12), kBatch, 1)->digest(), data->digest());
}

void expect_refused_data(std::vector<io::NamedTensor> arrays, Code code, const std::string& words,
                         const std::vector<runtime::IoSpec>& batch = kBatch) {
  const auto data = Dataset::create(std::move(arrays), batch, 1);
  ASSERT_FALSE(data.ok()) << words;
  EXPECT_EQ(data.status().code(), code) << data.status().to_string();
  EXPECT_NE(data.status().message().find(words), std::string::npos) << data.status().to_string();
}

TEST(Data, ThatDoesNotFitIsRefusedByName) {
  const auto all = rows(11);
  expect_refused_data({all[0]}, Code::kNotFound, "no array 'target'");
  expect_refused_data({}, Code::kNotFound, "no array 'x'; it has no array");
  expect_refused_data({all[0], all[1], {"z", all[0].value}}, Code::kInvalidArgument, "'z'");
  expect_refused_data({all[0], rows(10)[1]}, Code::kShapeMismatch, "'target': it has 10 rows");
  expect_refused_data({{"x", all[1].value}, all[1]}, Code::kDtypeMismatch, "type i64");
  expect_refused_data({{"x", DynValue::of_int(1)}, all[1]}, Code::kShapeMismatch, "i64[3,2]");
  expect_refused_data(rows(2), Code::kInvalidArgument, "2 rows, a batch takes 3");
  expect_refused_data(rows(9), Code::kShapeMismatch, "'target' is f32[4]",
                      {kBatch[0], {"target", DType::kF32, {4}, 16}});
  expect_refused_data(rows(9), Code::kShapeMismatch, "'x' is i64[]", {{"x", DType::kI64, {}, 8}});
  expect_refused_data(rows(9), Code::kInvalidArgument, "takes no data", {});
}

TEST(TrainOptions, AreSetByNameAndSayWhatTheyAre) {
  StepSpec spec;
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"optimizer", "adamw"},
                                                        {"loss", "cross_entropy"},
                                                        {"schedule", "cosine"},
                                                        {"lr", "0.001"},
                                                        {"warmup", "12"},
                                                        {"freeze", "w1"},
                                                        {"allow_unused", "on"},
                                                        {"on_nan", "skip"}}) {
    ASSERT_TRUE(set_train_option(spec, name, value).ok()) << name;
    EXPECT_EQ(*train_option_text(spec, name), value);
  }
  ASSERT_TRUE(set_train_option(spec, "freeze", "w2*").ok());
  EXPECT_EQ(*train_option_text(spec, "freeze"), "w1\nw2*");
  EXPECT_EQ(spec.optimizer.rule, Rule::kAdamW);
  EXPECT_EQ(spec.schedule.curve, Curve::kCosine);
  const auto refused = [&](const char* name, const char* value, Code code, const char* words) {
    const Status status = set_train_option(spec, name, value);
    EXPECT_EQ(status.code(), code) << name;
    EXPECT_NE(status.message().find(words), std::string::npos) << status.to_string();
  };
  refused("optimizer", "adan", Code::kInvalidArgument, "optimizer: expected one of sgd,");
  refused("lr", "-1", Code::kInvalidArgument, "a number from 0 on");
  refused("lr", "inf", Code::kInvalidArgument, "a number from 0 on");
  refused("lr", "0.1x", Code::kInvalidArgument, "found '0.1x'");
  refused("warmup", "1.5", Code::kInvalidArgument, "a whole number");
  refused("allow_unused", "yes", Code::kInvalidArgument, "on or off");
  refused("optimiser", "sgd", Code::kUnknownOption, "did you mean 'optimizer'");
  EXPECT_EQ(spec.optimizer.rule, Rule::kAdamW);
}

}  // namespace
}  // namespace pyc::train
