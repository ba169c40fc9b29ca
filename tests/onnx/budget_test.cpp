// A memory budget holds over all that a model in stages keeps and a run holds: the run is within it
// to the byte, or refused by name. And compiling is bounded however the shapes change.

#include <cstdlib>
#include <string_view>

#include "base/sanitizers.h"
#include "onnx/budget_models.h"
#include "support/round.h"

namespace pyc::onnx::test {
namespace {

TEST(Budget, OpenModelsKeepItToTheByteOrAreRefused) {
  constexpr uint32_t kTurns = kSanitized ? 4 : 1;
  const Tally all = run_budgets("reference", pyc::test::round_of_tests() % kTurns, kTurns);
  EXPECT_EQ(all.models, kBudgetModels / kTurns);
  EXPECT_GT(all.kept, 200 / kTurns);
  EXPECT_GT(all.refused, 20 / kTurns);
}

// The code of few is generated; which, moves on by one with every commit (budget_slow_test.cpp has
// all).
TEST(Budget, SoDoThoseOfGeneratedCode) {
  constexpr uint32_t kTurns = 25;
  const Tally some = run_budgets("cpu", pyc::test::round_of_tests() % kTurns, kTurns);
  EXPECT_EQ(some.models, kBudgetModels / kTurns);
  EXPECT_GT(some.kept, 0);
}

// Kept programs make room: the first size is dropped for the second and compiled again.
TEST(Budget, TheOldestProgramsAreDroppedFirst) {
  constexpr uint32_t kSeed = 3;
  const Bytes bytes = ModelMaker(kSeed).make();
  const auto input = [](int64_t count) {
    return std::vector<DynValue>{rows(count, ModelMaker::columns_of(kSeed))};
  };
  const auto one = [&](int64_t count) {
    const auto made = budgeted(bytes, 0);
    EXPECT_TRUE((*made)->run(input(count)).ok());
    return (*made)->memory().peak_bytes;
  };
  const int64_t needed = std::max(one(9), one(6));
  ASSERT_LT(needed, run_sizes(kSeed, 0).peak);
  const Outcome tight = run_sizes(kSeed, needed);
  ASSERT_TRUE(tight.refused.ok()) << tight.refused.to_string();
  EXPECT_LE(tight.peak, needed);
  const auto made = budgeted(bytes, needed);
  for (const int64_t count : {9, 6, 9}) {
    EXPECT_TRUE((*made)->run(input(count)).ok());
  }
  int dropped = 0;
  for (const Decision& d : (*made)->decisions()) {
    dropped += d.what == "kept_program" && d.reason == "memory_budget" ? 1 : 0;
  }
  EXPECT_GT(dropped, 0);
}

TEST(Budget, ARefusalNamesTheSegmentAndItsBytes) {
  const int64_t peak = run_sizes(3, 0).peak;
  const auto made = budgeted(ModelMaker(3).make(), peak / 8);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const auto y = (*made)->run(std::vector<DynValue>{rows(9, ModelMaker::columns_of(3))});
  expect_refused(y, Code::kBudgetExceeded,
                 "the memory budget is " + std::to_string(peak / 8) + ": ");
  expect_refused(y, Code::kBudgetExceeded, "parameter ");
  EXPECT_FALSE(y.status().node().empty()) << y.status().to_string();
}

// Shapes that never come back, each with a number in its code: a bounded number of compiles, the
// same results. The number is folded; where it is not, one code serves all shapes.
TEST(Storm, CompilingIsBounded) {
  const char* config = std::getenv("PYC_TEST_CONFIG");
  if (config != nullptr &&
      std::string_view(config).find("fold_constants") != std::string_view::npos) {
    GTEST_SKIP() << "constants are not folded here";
  }
  const Bytes bytes =
      model({.inputs = {value("x", tensor_type(kF32, {named("rows"), fixed(4)}))},
             .outputs = {unshaped("y", kF32)},
             .nodes = {node("Size", {"x"}, {"size"}, {}, "size"),
                       node("Cast", {"size"}, {"count"}, {attr_int("to", kF32)}, "cast"),
                       node("Mul", {"x", "count"}, {"y"}, {}, "scale")}});
  const auto made = budgeted(bytes, 0, "cpu");
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  constexpr int64_t kShapes = 400;
  for (int64_t count = 1; count <= kShapes; ++count) {
    std::vector<float> values(static_cast<size_t>(count * 4), 1.5F);
    const auto y = (*made)->run(std::vector<DynValue>{f32({count, 4}, values)});
    ASSERT_TRUE(y.ok()) << y.status().to_string();
    const double scaled = 1.5 * static_cast<double>(values.size());
    ASSERT_EQ(numbers_of(y), std::vector<double>(values.size(), scaled));
  }
  int compiled = 0;
  int storms = 0;
  for (const Decision& d : (*made)->decisions()) {
    compiled += d.what == "kernel:g0" && d.chosen != "interpret" ? 1 : 0;
    storms += d.what == "respecialize" && d.chosen == "interpret" && d.reason == "storm" ? 1 : 0;
  }
  EXPECT_EQ(storms, 1);
  EXPECT_GE(compiled, exec::Executor::kStormLimit);
  EXPECT_LE(compiled, exec::Executor::kStormLimit + kShapes / 8);
}

}  // namespace
}  // namespace pyc::onnx::test
