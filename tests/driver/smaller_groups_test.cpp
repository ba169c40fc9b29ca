// Groups that are formed otherwise for less memory: rows that go through products in parts, and
// sums that are kept instead of what is made of them. No bit changes.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "driver/predict.h"
#include "driver/smaller_groups.h"
#include "driver/stages.h"
#include "session/model.h"
#include "support/long_lives.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

struct RanModel {
  std::vector<Digest> outputs;
  int64_t arena_bytes = 0;
  int64_t peak_bytes = 0;
  std::vector<std::string> plan_decisions;

  bool has(const std::string& what) const {
    return std::ranges::find(plan_decisions, what) != plan_decisions.end();
  }
};

RanModel run_with(const std::string& text, const CompileOptions& options) {
  RanModel out;
  auto model = session::compile(parse_model(text).value(), options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  if (!model.ok()) return out;
  auto run = tooling::SeededRun::create(**model, 3, AlignedBuffer::Mode::kGuarded);
  EXPECT_TRUE(run.ok());
  const Status status = (*model)->run(run->inputs(), run->outputs());
  EXPECT_TRUE(status.ok()) << status.to_string();
  for (size_t i = 0; i < run->outputs().size(); ++i) out.outputs.push_back(run->digest(i));
  out.arena_bytes = (*model)->memory().arena_bytes;
  out.peak_bytes = (*model)->memory().peak_bytes;
  for (const Decision& d : (*model)->decisions()) out.plan_decisions.push_back(d.what);
  return out;
}

CompileOptions in_mode(const std::string& mode, const std::string& device = "cpu") {
  CompileOptions options;
  options.device = device;
  options.threads = 2;
  options.mode = mode;
  return options;
}

// x w, something of each element, w again: between them 32 times as wide.
std::string wide_between(int rows, const std::string& outputs) {
  return fmt::format(
      "graph @wide(%x: f32[1,{0},32]) -> ({1}) {{\n"
      "  %a = const f32[32,1024] random(seed=1, lo=-0.2, hi=0.2)\n"
      "  %b = const f32[1024] random(seed=2, lo=-0.1, hi=0.1)\n"
      "  %d = const f32[32,1024] random(seed=3, lo=-0.1, hi=0.1)\n"
      "  %c = transpose(%d) {{perm=[1, 0]}}\n"
      "  %h = relu(%x)\n"
      "  %u = matmul(%h, %a)\n"
      "  %v = add(%u, %b)\n"
      "  %w = gelu(%v)\n"
      "  %z = matmul(%w, %c)\n"
      "  %y = add(%z, %h)\n"
      "}}\n",
      rows, outputs);
}

TEST(RowsInParts, NeedAPartOfTheWidestValue) {
  const std::string text = wide_between(64, "%y");
  const RanModel usual = run_with(text, in_mode("balanced"));
  const RanModel parts = run_with(text, in_mode("memory_first"));
  EXPECT_FALSE(usual.has("plan:parts"));
  EXPECT_TRUE(parts.has("plan:parts"));
  EXPECT_LT(parts.arena_bytes, usual.arena_bytes / 2);
}

TEST(RowsInParts, ChangeNoBit) {
  const std::string text = wide_between(64, "%y");
  const RanModel parts = run_with(text, in_mode("memory_first"));
  EXPECT_EQ(parts.outputs, run_with(text, in_mode("balanced")).outputs);
  EXPECT_EQ(parts.outputs, run_with(text, in_mode("balanced", "reference")).outputs);
  EXPECT_EQ(parts.outputs, run_with(text, in_mode("memory_first", "reference")).outputs);
}

// Too few rows, rows that do not divide, a value between that something else reads.
TEST(RowsInParts, StayTogetherWherePartsDoNotHelp) {
  for (const std::string& text :
       {wide_between(16, "%y"), wide_between(66, "%y"), wide_between(64, "%y, %w")}) {
    SCOPED_TRACE(text);
    const RanModel usual = run_with(text, in_mode("balanced"));
    const RanModel least = run_with(text, in_mode("memory_first"));
    EXPECT_FALSE(least.has("plan:parts"));
    EXPECT_EQ(least.outputs, usual.outputs);
  }
}

TEST(KeptSums, AreWhatSeveralResultsAreMadeOf) {
  const auto graph = ir::verify_graph(parse_model(test::residual_step(2, 16, 16)).value());
  ASSERT_TRUE(graph.ok());
  const auto shown = stages(*graph, in_mode("balanced"));
  ASSERT_TRUE(shown.ok()) << shown.status().to_string();
  EXPECT_EQ(made_of_sums(shown->lowered), (std::set<std::string>{"error", "s0", "s1"}));
}

TEST(KeptSums, ChangeNoBitUnderABudget) {
  const std::string text = test::residual_step(6, 128, 64);
  const RanModel free = run_with(text, in_mode("balanced"));
  CompileOptions tight = in_mode("balanced");
  tight.stream_parameters = false;
  tight.memory_budget = free.peak_bytes - free.arena_bytes / 2;
  const RanModel half = run_with(text, tight);
  EXPECT_EQ(half.outputs, free.outputs);
  EXPECT_LE(half.peak_bytes, tight.memory_budget);
#if defined(__aarch64__)
  EXPECT_TRUE(half.has("plan:sums"));  // elsewhere arithmetic may be too cheap beside it
#endif
  const auto graph = ir::verify_graph(parse_model(text).value());
  const auto least = predict(*graph, tight, true);
  ASSERT_TRUE(least.ok()) << least.status().to_string();
  tight.memory_budget = least->peak_bytes;
  EXPECT_EQ(run_with(text, tight).outputs, free.outputs);
  tight.memory_budget = least->peak_bytes - 1;
  EXPECT_EQ(predict(*graph, tight).status().code(), Code::kBudgetExceeded);
}

}  // namespace
}  // namespace pyc::driver
