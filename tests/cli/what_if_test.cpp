// pyc what-if as a user calls it.

#include <algorithm>
#include <fstream>

#include "cli/json_output.h"
#include "cli/program.h"
#include "support/long_lives.h"

namespace pyc::test {
namespace {

std::string residual_file(const TempFolder& folder) {
  const std::string path = folder.file("residual.ir");
  std::ofstream(path) << residual_step(4, 16, 16);
  return path;
}

TEST(WhatIfCommand, PredictsModesBudgetsAndThreads) {
  const TempFolder folder;
  const Json rows = json_of("what-if " + residual_file(folder) + " --threads 2")["scenarios"];
  const int64_t peak = rows[0]["predicted"]["peak_bytes"];
  int again = 0;
  bool one_thread = false;
  for (const Json& row : rows) {
    one_thread = one_thread || row["threads"] == 1;
    EXPECT_FALSE(row.contains("measured"));
    if (row.contains("refused")) continue;
    const int64_t budget = row["budget_bytes"];
    EXPECT_TRUE(budget == 0 || row["predicted"]["peak_bytes"] <= budget) << row;
    EXPECT_GT(row["predicted"]["run_us"], 0.0);
    if (row["budget"] == "smallest" && row["mode"] == "balanced") {
      EXPECT_LT(budget, peak);
      again = row["predicted"]["recomputed_steps"];
    }
  }
  EXPECT_TRUE(one_thread);
  EXPECT_GT(again, 0);
}

// The planned peak is what is allocated, to the byte.
TEST(WhatIfCommand, MeasuresWhatItPredicts) {
  const TempFolder folder;
  const std::string call = "what-if " + residual_file(folder) + " --threads 2 --measure --runs 3";
  int measured = 0;
  const Json report = json_of(call);
  for (const Json& row : report["scenarios"]) {
    if (row.contains("refused")) continue;
    EXPECT_EQ(row["measured"]["peak_bytes"], row["predicted"]["peak_bytes"]) << row;
    EXPECT_GT(row["measured"]["run_us"], 0.0);
    ++measured;
  }
  EXPECT_GT(measured, 6);
  const Outcome text = pyc(call);
  EXPECT_EQ(text.exit, 0) << text.text;
  EXPECT_TRUE(has(text, "predicted fastest: ")) << text.text;
  EXPECT_TRUE(has(text, "measured fastest:  ")) << text.text;
}

// The same options twice are even, and one that takes far longer by the costs is called slower.
TEST(WhatIfCommand, SaysWhichIsFasterOrThatNoneIs) {
  const std::string call = "what-if " PYC_SOURCE_DIR "/tests/models/mlp.ir --threads 1";
  const Json rows = json_of(call)["scenarios"];
  EXPECT_EQ(rows[0]["predicted"]["against_first"], "even");
  int slower = 0;
  for (const Json& row : rows) {
    if (row["without"] != "f32_matmul") continue;
    EXPECT_EQ(row["predicted"]["against_first"], "slower") << row;
    ++slower;
  }
  EXPECT_EQ(slower, 1);
  const Outcome one = pyc(call);
  EXPECT_TRUE(has(one, "predicted fastest: ")) << one.text;
  EXPECT_FALSE(has(one, " 1 threads")) << one.text;
  // Too small to be shared: two threads are even.
  const Outcome text = pyc("what-if " PYC_SOURCE_DIR "/tests/models/linear_relu.ir --threads 1");
  EXPECT_TRUE(has(text, "no clear winner: ")) << text.text;
}

TEST(WhatIfCommand, TheSmallestBudgetRuns) {
  const TempFolder folder;
  const std::string path = residual_file(folder);
  const Json report = json_of("what-if " + path + " --threads 2");
  int tried = 0;
  for (const Json& row : report["scenarios"]) {
    if (row["budget"] != "smallest" || row["mode"] != "balanced") continue;
    ++tried;
    const int64_t bytes = row["budget_bytes"];
    const std::string run = "run " + path + " --threads 2 --memory-budget ";
    EXPECT_EQ(json_of(run + std::to_string(bytes))["recomputed_steps"],
              row["predicted"]["recomputed_steps"]);
    EXPECT_EQ(pyc(run + std::to_string(bytes - 1)).exit, 6);
  }
  EXPECT_EQ(tried, 1);
}

}  // namespace
}  // namespace pyc::test
