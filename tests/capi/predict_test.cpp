// What a compile would come to.

#include <pyc/predict.h>

#include "capi/calls.h"

namespace pyc::test {
namespace {

TEST(Predict, IsWhatACompileComesTo) {
  const Graph graph = small_graph();
  const CompileOptions options = CompileOptions().set("threads", 2);
  auto made = sized<pyc_prediction>();
  ASSERT_EQ(pyc_predict(graph.get(), options.get(), 0, &made, nullptr), PYC_STATUS_OK);
  const Model model(graph, options);
  EXPECT_EQ(made.peak_bytes, model.memory().peak_bytes);
  EXPECT_EQ(made.arena_bytes, model.memory().arena_bytes);
  EXPECT_EQ(made.recomputed_steps, 0);
  EXPECT_GT(made.steps, 0);
  EXPECT_GT(made.run_ns, 0.0);
}

TEST(Predict, TheSmallestBudgetDoes) {
  const Graph graph = small_graph();
  auto made = sized<pyc_prediction>();
  CompileOptions options;
  ASSERT_EQ(pyc_predict(graph.get(), options.get(), 1, &made, nullptr), PYC_STATUS_OK);
  options.set("memory_budget", std::to_string(made.peak_bytes));
  EXPECT_EQ(pyc_predict(graph.get(), options.get(), 0, &made, nullptr), PYC_STATUS_OK);
  options.set("memory_budget", std::to_string(made.peak_bytes - 1));
  EXPECT_EQ(pyc_predict(graph.get(), options.get(), 0, &made, nullptr), PYC_STATUS_BUDGET_EXCEEDED);
}

TEST(Predict, RefusesWhatIsNotThere) {
  auto made = sized<pyc_prediction>();
  EXPECT_EQ(
      refusal([&](pyc_error** e) { return pyc_predict(nullptr, nullptr, 0, &made, e); }).status,
      PYC_STATUS_NULL_POINTER);
  const Graph graph = small_graph();
  EXPECT_EQ(refusal([&](pyc_error** e) {
              return pyc_predict(graph.get(), nullptr, 0, nullptr, e);
            }).status,
            PYC_STATUS_NULL_POINTER);
  made.struct_size = 8;
  EXPECT_EQ(
      refusal([&](pyc_error** e) { return pyc_predict(graph.get(), nullptr, 0, &made, e); }).status,
      PYC_STATUS_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace pyc::test
