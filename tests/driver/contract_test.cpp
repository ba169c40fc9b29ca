#include "driver/contract.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "driver/compile.h"
#include "driver/devices.h"
#include "driver/select.h"
#include "lower/lower.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "session/cache.h"
#include "session/model.h"
#include "support/budgets.h"

namespace pyc::driver {
namespace {

std::string model_text(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

ir::Graph contract_model(const std::string& name) {
  auto graph = parse_model(model_text(PYC_SOURCE_DIR "/tests/models/" + name));
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  return std::move(graph).value();
}

const Decision* answer_to(const DecisionLog& log, const std::string& clause) {
  const auto found = std::ranges::find(log, "contract:" + clause, &Decision::what);
  return found == log.end() ? nullptr : &*found;
}

std::string refusal_of(std::string_view text, CompileOptions options = {}) {
  const CompileOptions before = options;
  const Status status = add_contract(options, text);
  EXPECT_EQ(options_summary(options), options_summary(before)) << "a refusal changed something";
  EXPECT_TRUE(options.clauses.empty());
  return status.to_string();
}

TEST(Contract, ClausesAreOptionsByName) {
  CompileOptions options;
  const Status status = add_contract(options,
                                     "# what the product needs\n"
                                     "memory_budget = 1048576\n"
                                     "\n"
                                     "  threads=2   # cores\r\n"
                                     "determinism = strict\n"
                                     "exclude = f32_matmul\n"
                                     "exclude = attention");
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(options.memory_budget, 1048576);
  EXPECT_EQ(options.threads, 2);
  EXPECT_EQ(options.determinism, Determinism::kStrict);
  EXPECT_EQ(options.kernels, (Names{"f32_matmul", "attention"}));
  EXPECT_EQ(options.clauses.size(), 5U);
  EXPECT_TRUE(was_asked(options, "threads"));
}

TEST(Contract, WhatIsNoClauseIsRefusedWithItsLine) {
  EXPECT_EQ(refusal_of("threads = 2\nfast please\n"),
            "parse_error: contract, line 2: expected NAME = VALUE, found 'fast please'");
  EXPECT_EQ(refusal_of("= 2"), "parse_error: contract, line 1: expected NAME = VALUE, found '= 2'");
  EXPECT_EQ(refusal_of("memory_bugdet = 2"),
            "unknown_option: contract, line 1: there is no compile option 'memory_bugdet', did you "
            "mean 'memory_budget'?");
  EXPECT_EQ(
      refusal_of("threads = many"),
      "invalid_argument: contract, line 1: threads: expected an integer from 0 to 1024, found "
      "'many'");
  EXPECT_EQ(refusal_of("threads = 2\nthreads = 2"),
            "invalid_argument: contract, line 2: threads: named twice");
}

TEST(Contract, AnOptionThatContradictsAClauseIsRefused) {
  CompileOptions options;
  options.threads = 4;
  EXPECT_EQ(refusal_of("threads = 2", options),
            "invalid_argument: contract, line 1: threads: the contract says '2', but it is set to "
            "'4' already; leave out one");
  options.threads = 2;
  EXPECT_TRUE(add_contract(options, "threads = 2").ok());
}

TEST(Contract, EveryClauseIsAnswered) {
  CompileOptions options;
  ASSERT_TRUE(add_contract(options,
                           "memory_budget = 100000000\ncompile_budget_ms = 3600000\n"
                           "latency_target_us = 1000000\nthreads = 2\ndeterminism = strict\n"
                           "fallback = refuse\nmode = memory_first\n")
                  .ok());
  auto model = session::compile(contract_model("mlp.ir"), options);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const DecisionLog log = (*model)->decisions();
  for (const ContractClause& clause : options.clauses) {
    ASSERT_NE(answer_to(log, clause.name), nullptr) << clause.name;
    EXPECT_EQ(answer_to(log, clause.name)->chosen, "kept");
  }
  EXPECT_EQ(answer_to(log, "memory_budget")->detail,
            fmt::format("peak {} of 100000000 bytes", (*model)->memory().peak_bytes));
  EXPECT_EQ(answer_to(log, "threads")->detail, "2 threads");
  EXPECT_EQ(answer_to(log, "latency_target_us")->reason, "predicted");

  // A program that was kept answers the contract of the call, not the one it was made by.
  CompileOptions plain = options;
  plain.clauses.clear();
  auto again = session::compile(contract_model("mlp.ir"), plain);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE((*again)->stats().cache_hit);
  EXPECT_EQ(answer_to((*again)->decisions(), "threads"), nullptr);
}

// Without time nothing is made, and with time the program is the same as without a budget.
TEST(Contract, TheCompileBudgetRefusesAndNeverChangesTheProgram) {
  CompileOptions options;
  options.device = "reference";
  options.cache = false;
  options.compile_budget_ms = 0;
  const auto refused = session::compile(contract_model("mlp.ir"), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.status().to_string(),
      "budget_exceeded: compile_budget_ms: expected the compile to be over within 0 ms, found "
      "it still at the stage 'passes'; allow more, or leave it out");
  auto verified = ir::verify_graph(contract_model("mlp.ir"));
  ASSERT_TRUE(verified.ok());
  const auto plan = [&](int64_t budget) {
    options.compile_budget_ms = budget;
    const auto text = dump(*verified, options, "plan");
    EXPECT_TRUE(text.ok());
    return text.ok() ? *text : "";
  };
  EXPECT_EQ(plan(INT64_MAX), plan(-1));
}

// A compile is over soon after its time, however many kernels are left to make.
TEST(Contract, TimeIsAskedBeforeEachKernel) {
  const auto backend = find_backend("cpu");
  ASSERT_TRUE(backend.ok());
  DecisionLog log;
  const auto given = ir::verify_graph(contract_model("transformer_block.ir"));
  ASSERT_TRUE(given.ok());
  const auto canonical = passes::run_pipeline(*given, ops::all_ops(), {}, &log);
  ASSERT_TRUE(canonical.ok());
  const auto lowered = lower::lower_graph(*canonical, {});
  ASSERT_TRUE(lowered.ok());
  std::atomic<int> asked = 0;
  backends::BackendOptions options;
  options.before_kernel = [&asked] {
    return ++asked > 2 ? Status(Code::kBudgetExceeded, "no more time") : Status();
  };
  const auto selection = select_kernels(*lowered, **backend, options, {}, false);
  ASSERT_TRUE(selection.ok());
  backends::CompileStats stats;
  const auto made = (*backend)->compile(*lowered, selection->chosen, options, &stats);
  EXPECT_EQ(made.status().code(), Code::kBudgetExceeded) << made.status().to_string();
  EXPECT_GT(asked, 2);
}

TEST(Contract, AKeptProgramTakesNoTime) {
  CompileOptions options;
  options.device = "reference";
  ASSERT_TRUE(session::compile(contract_model("cnn.ir"), options).ok());
  options.compile_budget_ms = 0;
  auto model = session::compile(contract_model("cnn.ir"), options);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_TRUE((*model)->stats().cache_hit);
}

TEST(Contract, ALatencyTargetIsComparedWithThePrediction) {
  CompileOptions options;
  options.device = "reference";
  auto model = session::compile(contract_model("mlp.ir"), options);
  ASSERT_TRUE(model.ok());
  const double us = predicted_ns((*model)->decisions()) / 1e3;
  ASSERT_GT(us, 2.0);
  options.latency_target_us = static_cast<int64_t>(us) + 1;
  EXPECT_TRUE(session::compile(contract_model("mlp.ir"), options).ok());
  options.latency_target_us = static_cast<int64_t>(us) - 1;
  for (const bool cached : {true, false}) {
    options.cache = cached;
    const auto refused = session::compile(contract_model("mlp.ir"), options);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), Code::kBudgetExceeded);
    EXPECT_NE(refused.status().message().find("latency_target_us: expected a run of at most"),
              std::string::npos)
        << refused.status().message();
  }
  DecisionLog unknown{{"kernel:g0", "k", "least_cost", "", {{"k", 0.0, ""}}}};
  EXPECT_EQ(check_latency(options, unknown).code(), Code::kUnsupported);
}

TEST(Contract, TheSmallestBudgetThatARefusalNamesWorks) {
  for (const auto& entry : std::filesystem::directory_iterator(PYC_SOURCE_DIR "/tests/models")) {
    if (entry.path().extension() != ".ir") continue;
    for (const std::string_view mode : {"balanced", "memory_first"}) {
      SCOPED_TRACE(entry.path().filename().string() + " " + std::string(mode));
      CompileOptions options;
      options.device = "reference";
      options.threads = 2;
      options.mode = mode;
      options.memory_budget = 1;
      const ir::Graph graph = contract_model(entry.path().filename());
      const auto refused = session::compile(graph, options);
      ASSERT_FALSE(refused.ok());
      ASSERT_EQ(refused.status().code(), Code::kBudgetExceeded);
      const int64_t smallest = test::smallest_budget(refused.status());
      options.memory_budget = smallest - 1;
      EXPECT_FALSE(session::compile(graph, options).ok());
      options.memory_budget = smallest;
      auto model = session::compile(graph, options);
      ASSERT_TRUE(model.ok()) << model.status().to_string();
      EXPECT_EQ((*model)->memory().peak_bytes, smallest);
    }
  }
}

// A contract of some clauses, with values that a model keeps easily, barely or not at all.
std::string draw_contract(std::mt19937& random, int64_t peak) {
  const auto pick = [&](std::initializer_list<std::string> values) {
    return *(values.begin() + static_cast<int64_t>(random() % values.size()));
  };
  const auto bytes = [](int64_t n) { return std::to_string(n); };
  std::string text;
  const auto clause = [&](const std::string& name, const std::string& value) {
    if (random() % 2 == 0) text += name + " = " + value + "\n";
  };
  clause("memory_budget", pick({"0", "1", bytes(peak - 64), bytes(peak), bytes(peak * 10)}));
  clause("compile_budget_ms", pick({"-1", "0", "3600000", "3600000"}));
  clause("latency_target_us", pick({"0", "1", "100000000", "100000000"}));
  clause("threads", pick({"1", "2", "3"}));
  clause("determinism", pick({"strict", "balanced", "fast"}));
  clause("fallback", pick({"refuse", "allow"}));
  clause("mode", pick({"balanced", "memory_first"}));
  clause("device", pick({"reference", "reference", "reference", "reference", "cuda"}));
  return text;
}

TEST(Contract, TwoHundredAreKeptOrRefusedByName) {
  std::mt19937 random(20);
  const ir::Graph graph = contract_model("mlp.ir");
  CompileOptions plain;
  plain.device = "reference";
  plain.threads = 1;
  auto unbound = session::compile(graph, plain);
  ASSERT_TRUE(unbound.ok());
  const int64_t peak = (*unbound)->memory().peak_bytes;
  int kept = 0;
  int refused = 0;
  for (int round = 0; round < 200; ++round) {
    session::cache_clear();  // a kept program would take no time
    const std::string text = draw_contract(random, peak);
    SCOPED_TRACE(text);
    CompileOptions options;
    ASSERT_TRUE(add_contract(options, text).ok());
    if (!was_asked(options, "device")) options.device = "reference";
    auto model = session::compile(graph, options);
    if (!model.ok()) {
      ++refused;
      const std::string& message = model.status().message();
      const bool named = std::ranges::any_of(options.clauses, [&](const ContractClause& c) {
        return message.find(c.name) != std::string::npos;
      });
      EXPECT_TRUE(named) << message;
      continue;
    }
    ++kept;
    const runtime::MemoryReport memory = (*model)->memory();
    for (const ContractClause& clause : options.clauses) {
      const Decision* answer = answer_to((*model)->decisions(), clause.name);
      ASSERT_NE(answer, nullptr) << clause.name;
      EXPECT_EQ(answer->chosen, "kept");
    }
    EXPECT_TRUE(options.memory_budget == 0 || memory.peak_bytes <= options.memory_budget);
    EXPECT_NE(options.compile_budget_ms, 0);
    EXPECT_NE(options.latency_target_us, 1);
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace pyc::driver
