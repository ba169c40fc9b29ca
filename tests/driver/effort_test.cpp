// How much a compile does is chosen beforehand; bits do not depend on it.

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "driver/compile.h"
#include "driver/contract.h"
#include "session/cache.h"
#include "session/model.h"
#include "support/verified.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

constexpr std::array<std::string_view, 3> kEfforts = {"fast_dev", "balanced", "max_perf"};

ir::Graph effort_model(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  auto graph = parse_model(text.str());
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  return std::move(graph).value();
}

CompileOptions at_effort(std::string_view effort) {
  CompileOptions options;
  EXPECT_TRUE(set_option(options, "effort", effort).ok());
  options.threads = 2;
  return options;
}

std::string digest_of(const ir::Graph& graph, const CompileOptions& options) {
  auto model = session::compile(graph, options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  if (!model.ok()) return "";
  auto data = tooling::SeededRun::create(**model, 1);
  EXPECT_TRUE(data.ok());
  EXPECT_TRUE((*model)->run(data->inputs(), data->outputs()).ok());
  std::string digests;
  for (size_t i = 0; i < data->outputs().size(); ++i) digests += data->digest(i).hex() + " ";
  return digests;
}

TEST(Effort, NeverChangesBits) {
  for (const auto& entry : std::filesystem::directory_iterator(PYC_SOURCE_DIR "/tests/models")) {
    if (entry.path().extension() != ".ir") continue;
    SCOPED_TRACE(entry.path().filename());
    const ir::Graph graph = effort_model(entry.path());
    CompileOptions reference;
    reference.device = "reference";
    const std::string expected = digest_of(graph, reference);
    for (const std::string_view effort : kEfforts) {
      EXPECT_EQ(digest_of(graph, at_effort(effort)), expected) << effort;
    }
  }
}

// Each level makes other code, the same every time.
TEST(Effort, DecidesHowCodeIsMade) {
  const auto verified =
      ir::verify_graph(effort_model(PYC_SOURCE_DIR "/tests/models/transformer_block.ir"));
  ASSERT_TRUE(verified.ok());
  const auto assembly = [&](std::string_view effort) {
    CompileOptions options = at_effort(effort);
    options.target = "aarch64_neon";
    const auto text = dump(*verified, options, "asm");
    EXPECT_TRUE(text.ok()) << text.status().to_string();
    return text.ok() ? *text : "";
  };
  const std::string balanced = assembly("balanced");
  EXPECT_TRUE(assembly("balanced") == balanced);
  EXPECT_TRUE(assembly("fast_dev") != balanced);
  EXPECT_TRUE(assembly("max_perf") != balanced);
}

TEST(Effort, IsAClauseAndPartOfTheKey) {
  const ir::Graph graph = effort_model(PYC_SOURCE_DIR "/tests/models/mlp.ir");
  session::cache_clear();
  for (const std::string_view effort : kEfforts) {
    CompileOptions options;
    ASSERT_TRUE(add_contract(options, "effort = " + std::string(effort)).ok());
    auto model = session::compile(graph, options);
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    EXPECT_FALSE((*model)->stats().cache_hit) << effort;
    const DecisionLog log = (*model)->decisions();
    EXPECT_TRUE(std::ranges::any_of(log, [](const Decision& d) {
      return d.what == "contract:effort" && d.chosen == "kept" && d.reason == "applied";
    }));
  }
  CompileOptions options;
  EXPECT_EQ(set_option(options, "effort", "max").to_string(),
            "unknown_option: effort 'max' is not known; known are fast_dev, balanced, max_perf");
}

// A compile that is late is refused at every effort, by the clause's name: no effort is lowered for
// the time that is left.
TEST(Effort, TheTimeRefusesAndLowersNothing) {
  const ir::Graph graph = effort_model(PYC_SOURCE_DIR "/tests/models/transformer_block.ir");
  for (const std::string_view effort : kEfforts) {
    CompileOptions options = at_effort(effort);
    options.cache = false;
    options.compile_budget_ms = 1;
    const auto refused = session::compile(graph, options);
    ASSERT_FALSE(refused.ok()) << effort;
    EXPECT_EQ(refused.status().code(), Code::kBudgetExceeded);
    EXPECT_NE(refused.status().message().find("compile_budget_ms: expected the compile to be over"),
              std::string::npos)
        << refused.status().message();
  }
}

}  // namespace
}  // namespace pyc::driver
