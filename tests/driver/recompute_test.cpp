// Models under budgets that need steps run again: no bit changes, and the runs say how many.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "driver/compile.h"
#include "driver/contract.h"
#include "driver/predict.h"
#include "session/artifacts.h"
#include "session/model.h"
#include "support/long_lives.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

struct LongLives {
  std::string name;
  ir::VerifiedGraph graph;
};

ir::VerifiedGraph checked(Result<ir::VerifiedGraph> graph) {
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  return std::move(graph).value();
}

// Smaller than those that bench/memory.cpp measures, of the same kinds.
std::vector<LongLives> long_lives() {
  std::stringstream unet;
  unet << std::ifstream(PYC_SOURCE_DIR "/tests/models/unet.ir").rdbuf();
  return {
      {"unet", checked(test::with_gradients(parse_model(unet.str()).value()))},
      {"dense", checked(test::with_gradients(parse_model(test::dense_block(8, 2, 4)).value()))},
      {"residual", checked(ir::verify_graph(parse_model(test::residual_step(4, 16, 16)).value()))}};
}

CompileOptions of_device(const std::string& device, int64_t budget) {
  CompileOptions options;
  options.device = device;
  options.threads = 2;
  options.memory_budget = budget;
  options.stream_parameters = false;
  return options;
}

struct Ran {
  std::vector<Digest> outputs;
  runtime::RunStats stats;
  int64_t peak_bytes = 0;
  int64_t logged = 0;      // recompute decisions
  bool kept_sums = false;  // then its groups are others
};

Ran run_once(runtime::Model& model) {
  auto run = tooling::SeededRun::create(model, 3, AlignedBuffer::Mode::kGuarded);
  EXPECT_TRUE(run.ok());
  Ran out;
  const Status status = model.run(run->inputs(), run->outputs(), &out.stats);
  EXPECT_TRUE(status.ok()) << status.to_string();
  for (size_t i = 0; i < run->outputs().size(); ++i) out.outputs.push_back(run->digest(i));
  EXPECT_TRUE(run->intact());
  out.peak_bytes = model.memory().peak_bytes;
  out.logged = std::ranges::count_if(
      model.decisions(), [](const Decision& d) { return d.what.starts_with("recompute:"); });
  out.kept_sums = std::ranges::count(model.decisions(), "plan:sums", &Decision::what) > 0;
  return out;
}

Ran run_graph(const ir::VerifiedGraph& graph, const CompileOptions& options) {
  auto model = session::compile(*graph, options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return model.ok() ? run_once(**model) : Ran();
}

TEST(Recompute, BudgetsChangeNoBit) {
  for (const LongLives& lives : long_lives()) {
    SCOPED_TRACE(lives.name);
    const Ran free = run_graph(lives.graph, of_device("cpu", 0));
    if (lives.name != "unet") {  // which takes the reference half a minute
      EXPECT_EQ(free.outputs, run_graph(lives.graph, of_device("reference", 0)).outputs);
    }
    EXPECT_EQ(free.stats.recomputed_steps, 0);
    const auto least = predict(lives.graph, of_device("cpu", 0), true);
    ASSERT_TRUE(least.ok()) << least.status().to_string();
    ASSERT_LT(least->peak_bytes, free.peak_bytes);
    for (const int64_t part : {0, 50}) {
      SCOPED_TRACE(part);
      const int64_t budget = least->peak_bytes + (free.peak_bytes - least->peak_bytes) * part / 100;
      const Ran tight = run_graph(lives.graph, of_device("cpu", budget));
      EXPECT_EQ(tight.outputs, free.outputs);
      EXPECT_LE(tight.peak_bytes, budget);
      // With wide vectors another order of its steps is enough.
      if (lives.name != "unet") {
        EXPECT_GT(tight.stats.recomputed_steps, 0);
      }
      EXPECT_LT(tight.peak_bytes, free.peak_bytes);
      EXPECT_GE(tight.stats.recomputed_steps, tight.logged);  // a group may be several kernels
      if (tight.kept_sums) continue;
      EXPECT_EQ(tight.stats.steps, free.stats.steps + tight.stats.recomputed_steps);
    }
    EXPECT_EQ(predict(lives.graph, of_device("cpu", least->peak_bytes - 1)).status().code(),
              Code::kBudgetExceeded);
  }
}

TEST(Recompute, TheReferenceDoesItToo) {
  const ir::VerifiedGraph graph =
      checked(ir::verify_graph(parse_model(test::residual_step(3, 8, 8)).value()));
  const Ran free = run_graph(graph, of_device("reference", 0));
  const auto least = predict(graph, of_device("reference", 0), true);
  ASSERT_TRUE(least.ok()) << least.status().to_string();
  const Ran tight = run_graph(graph, of_device("reference", least->peak_bytes));
  EXPECT_EQ(tight.outputs, free.outputs);
  EXPECT_GT(tight.stats.recomputed_steps, 0);
}

TEST(Recompute, IsInThePredictedTime) {
  const LongLives lives = long_lives()[2];
  const auto free = predict(lives.graph, of_device("cpu", 0));
  const auto least = predict(lives.graph, of_device("cpu", 0), true);
  ASSERT_TRUE(free.ok() && least.ok());
  EXPECT_GT(least->recomputed_steps, 0);
  EXPECT_GT(least->run_ns, free->run_ns);
  CompileOptions hurried = of_device("cpu", least->peak_bytes);
  hurried.latency_target_us = static_cast<int64_t>(least->run_ns / 1e3) - 1;
  EXPECT_EQ(predict(lives.graph, hurried).status().code(), Code::kBudgetExceeded);
}

TEST(Recompute, StaysInAnArtefact) {
  const LongLives lives = long_lives()[2];
  const auto least = predict(lives.graph, of_device("cpu", 0), true);
  ASSERT_TRUE(least.ok());
  const CompileOptions options = of_device("cpu", least->peak_bytes);
  const Ran direct = run_graph(lives.graph, options);
  auto compiled = compile_program(lives.graph, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
  const auto repeated = [](const runtime::Program& program) {
    return std::ranges::count(program.steps, true, &runtime::Step::again);
  };
  EXPECT_EQ(repeated(*compiled->program), direct.stats.recomputed_steps);
}

}  // namespace
}  // namespace pyc::driver
