// The runner: order, leaving out, log, budgets, time, and the value-changing passes by tolerance.

#include "passes/pipeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "base/convert.h"
#include "base/files.h"
#include "eval/node_evaluator.h"
#include "loop/builder.h"
#include "ops/lowering.h"
#include "ops/registry.h"
#include "passes/run_text.h"
#include "session/model.h"
#include "tooling/optimize.h"
#include "tooling/seeded_run.h"

namespace pyc::passes {
namespace {

const std::string kTests = std::string(PYC_SOURCE_DIR) + "/tests/";

ir::Graph model(const std::string& name) {
  auto graph = driver::parse_model(read_file(kTests + "models/" + name, 1 << 24).value());
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  return std::move(*graph);
}

std::vector<std::string> model_names() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kTests + "models")) {
    if (entry.path().extension() == ".ir") names.insert(entry.path().filename().string());
  }
  return {names.begin(), names.end()};
}

std::vector<Bytes> seeded_inputs(const ir::Graph& graph) {
  std::vector<Bytes> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::TensorType& type = graph.type(graph.inputs[i]);
    runtime::IoSpec spec{.name = "", .dtype = type.dtype, .shape = type.shape, .bytes = 0};
    spec.bytes = type.bytes();
    inputs.push_back(tooling::seeded_input(spec, i)->bytes.copy());
  }
  return inputs;
}

TEST(Pipeline, OrderIsFixed) {
  std::string order;
  for (const Pass& pass : pipeline()) {
    order +=
        fmt::format("{}{}{} ", pass.name, pass.value_changing ? "!" : "", pass.repeated ? "*" : "");
    EXPECT_FALSE(pass.summary.empty());
  }
  EXPECT_EQ(order,
            "fold_batch_norm! raise_attention! integerize_qdq! narrow_products! widen_half_chains! "
            "decompose canonicalize* simplify* fold_constants* move_transposes* "
            "cse* join_products isolate_outputs eliminate_dead ");
}

TEST(Pipeline, UnknownAndRequiredPassesCannotBeLeftOut) {
  const ir::Graph graph = model("linear_relu.ir");
  driver::CompileOptions options;
  options.passes_off = {"canonicalise"};
  auto refused = session::compile(graph, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kUnknownOption);
  EXPECT_EQ(refused.status().message(),
            "there is no pass 'canonicalise', did you mean 'canonicalize'?");
  options.passes_off = {"decompose"};
  refused = session::compile(graph, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message(), "pass 'decompose' cannot be left out");
}

TEST(Pipeline, ReorderingIsRefused) {
  const std::vector<std::string> reordered{"cse", "decompose"};
  const auto refused = tooling::run_passes(model("linear_relu.ir"), reordered);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kUnknownOption);
  EXPECT_EQ(refused.status().message(), "pass 'decompose' runs before 'cse': their order is fixed");
  // These run in turn until none changes anything.
  const std::vector<std::string> in_turn{"cse", "canonicalize", "eliminate_dead"};
  EXPECT_TRUE(tooling::run_passes(model("linear_relu.ir"), in_turn).ok());
}

TEST(Pipeline, ReportsCountRewritesByRule) {
  const auto result = tooling::run_passes(model("transformer_block.ir"), {});
  ASSERT_TRUE(result.ok());
  std::map<std::string, tooling::PassReport> reports;
  for (const tooling::PassReport& report : result->reports) {
    reports[report.name] = report;
    EXPECT_EQ(report.changed > 0, !report.rewrites.empty()) << report.name;
  }
  using Rewrites = std::map<std::string, int64_t>;
  EXPECT_EQ(reports["raise_attention"].rewrites, (Rewrites{{"attention", 1}}));
  EXPECT_EQ(reports["decompose"].rewrites, (Rewrites{{"attention", 1}, {"layer_norm", 3}}));
  EXPECT_LT(reports["decompose"].nodes_before, reports["decompose"].nodes_after);
}

TEST(Pipeline, GivesTheSameGraphAndLogEveryTime) {
  for (const std::string& name : model_names()) {
    std::string graph;
    std::string log;
    for (int run = 0; run < 20; ++run) {
      auto result = tooling::run_passes(model(name), {});
      ASSERT_TRUE(result.ok()) << result.status().to_string();
      std::string text;
      for (const Decision& d : result->log) text += d.to_string() + "\n";
      if (run > 0) {
        EXPECT_EQ(ir::print(result->graph), graph);
        EXPECT_EQ(text, log);
      }
      graph = ir::print(result->graph);
      log = text;
    }
  }
}

TEST(Pipeline, ASecondRunFindsNothingToDo) {
  for (const std::string& name : model_names()) {
    auto once = tooling::run_passes(model(name), {});
    ASSERT_TRUE(once.ok());
    auto twice = tooling::run_passes(once->graph, {});
    ASSERT_TRUE(twice.ok());
    for (const tooling::PassReport& report : twice->reports) {
      // Canonical order removes the copies of outputs and isolation makes them again.
      if (report.name == "isolate_outputs" || report.name == "canonicalize") continue;
      EXPECT_EQ(report.changed, 0) << report.name << " on " << name;
    }
    EXPECT_EQ(ir::print(twice->graph), ir::print(once->graph));
  }
}

TEST(Pipeline, ReportsEveryPassAndDumpsWhatChanged) {
  auto result = tooling::run_passes(model("transformer_block.ir"), {}, true);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->reports.size(), pipeline().size());
  size_t changed = 0;
  for (const tooling::PassReport& report : result->reports) {
    EXPECT_GE(report.runs, 1);
    EXPECT_GT(report.ns, 0);
    changed += static_cast<size_t>(report.changed);
  }
  EXPECT_GT(changed, 2u);
  ASSERT_EQ(result->dumps.size(), changed);
  EXPECT_EQ(result->dumps[0].first, "pass raise_attention, round 1");
  EXPECT_EQ(tooling::list_passes().size(), pipeline().size());
}

TEST(Pipeline, LeavingOutBitPreservingPassesKeepsTheBitsOfEveryModel) {
  for (const std::string& name : model_names()) {
    const ir::Graph graph = model(name);
    const std::vector<Bytes> inputs = seeded_inputs(graph);
    const Outcome all = run_graph(graph, {}, inputs);
    ASSERT_EQ(all.error, "");
    std::vector<std::string> off;
    for (const Pass& pass : pipeline()) {
      if (!pass.required && !pass.value_changing) off.emplace_back(pass.name);
    }
    const Outcome few = run_graph(graph, off, inputs);
    ASSERT_EQ(few.error, "");
    EXPECT_EQ(all.outputs, few.outputs) << name;
  }
}

TEST(Pipeline, ValueChangingPassesStayNear) {
  const ir::Graph graph = model("cnn.ir");
  const std::vector<Bytes> inputs = seeded_inputs(graph);
  const Outcome folded = run_graph(graph, {}, inputs);
  const Outcome plain = run_graph(graph, {"fold_batch_norm"}, inputs);
  ASSERT_EQ(folded.error + plain.error, "");
  EXPECT_NE(folded.outputs, plain.outputs);
  for (size_t i = 0; i + 4 <= folded.outputs[0].size() - 1; i += 4) {
    const double a = word_to_double(load_word(&folded.outputs[0][i], DType::kF32), DType::kF32);
    const double b = word_to_double(load_word(&plain.outputs[0][i], DType::kF32), DType::kF32);
    EXPECT_NEAR(a, b, 1e-6);
  }
}

TEST(Pipeline, ValueChangingPassesAreListedInTheNumericsContract) {
  const std::string page =
      read_file(std::string(PYC_SOURCE_DIR) + "/docs/NUMERICS.md", 1 << 20).value();
  std::set<std::string> listed;
  const std::regex row("\\| `([a-z_]+)` \\(pass\\) \\|");
  for (std::sregex_iterator it(page.begin(), page.end(), row), end; it != end; ++it) {
    listed.insert((*it)[1]);
  }
  std::set<std::string> marked;
  for (const Pass& pass : pipeline()) {
    if (pass.value_changing) marked.emplace(pass.name);
  }
  EXPECT_EQ(listed, marked);
}

// An op of somebody's own whose kernel the verifier refuses: the node stays, and the log says why.
TEST(FoldConstants, WhatCannotBeEvaluatedStays) {
  ir::OpDef odd = *ops::all_ops().find("neg");
  odd.name = "odd";
  odd.lower = [](ops::LowerContext& context, int, std::span<const loop::Expr> index) {
    return context.input(0, index) & context.input(0, index);
  };
  const ir::OpSet known({&odd});
  ir::GraphBuilder builder(known);
  const ir::TensorType type{DType::kF32, {4}};
  const ir::ValueId c = builder.constant(type, ir::splat_data(type, 1), "c").value();
  ASSERT_TRUE(builder.output(builder.op("odd", {c}, {}, "y").value()).ok());
  ir::Graph graph = std::move(builder).take();
  DecisionLog log;
  Rewrites rewrites;
  eval::Evaluators evaluators;
  const auto changed = fold_constants(
      graph, {.ops = known, .log = log, .rewrites = rewrites, .evaluators = evaluators});
  ASSERT_TRUE(changed.ok()) << changed.status().to_string();
  EXPECT_FALSE(*changed);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0].reason, "not_evaluable") << log[0].to_string();
}

TEST(FoldConstants, ABombCostsNothing) {
  // Each node alone is within the limit of one result; together they are more than all of them.
  std::string text = "graph @bomb(%x: f32[]) -> (%y) {\n%a0 = const f32[128,128] splat(1.5)\n";
  for (int i = 0; i < 400; ++i) {
    text += fmt::format("%a{} = matmul(%a{}, %a0)\n", i + 1, i);
  }
  text += "%s = reduce_max(%a400) {keepdims=false}\n%y = add(%x, %s)\n}\n";
  auto graph = driver::parse_model(text);
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  const auto start = std::chrono::steady_clock::now();
  auto result = tooling::run_passes(std::move(*graph), std::vector<std::string>{"fold_constants"});
  const auto taken = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_LT(taken, std::chrono::seconds(20));
  bool refused = false;
  for (const Decision& d : result->log) refused |= d.reason == "work_budget_spent";
  EXPECT_TRUE(refused);
}

TEST(FoldConstants, RefusalsSayWhy) {
  const auto text = read_file(kTests + "passes/fold_constants_refuses_growth.ir", 1 << 20).value();
  auto graph = driver::parse_model(text.substr(0, text.find("---")));
  ASSERT_TRUE(graph.ok());
  auto result = tooling::run_passes(std::move(*graph), std::vector<std::string>{"fold_constants"});
  ASSERT_TRUE(result.ok());
  std::string reasons;
  for (const Decision& d : result->log) {
    if (d.what.starts_with("fold_constants:")) reasons += d.what + " " + d.reason + "\n";
  }
  EXPECT_EQ(reasons, "fold_constants:%y result_too_large\nfold_constants:%z check_failed\n");
}

// A decoder with 12 layers, about 85 million parameters.
std::string transformer(int layers, int width, int length) {
  std::string text =
      fmt::format("graph @t(%x0: f32[1,{},{}]) -> (%x{}) {{\n", length, width, layers);
  const auto weights = [&](int l, const char* name, int rows, int columns) {
    text += fmt::format("%{}{} = const f32[{},{}] random(seed={}, lo=-0.1, hi=0.1)\n", name, l,
                        rows, columns, text.size());
    text += fmt::format("%{}b{} = const f32[{}] random(seed={}, lo=-0.1, hi=0.1)\n", name, l,
                        columns, text.size());
  };
  for (int l = 0; l < layers; ++l) {
    for (const char* name : {"q", "k", "v", "o"}) weights(l, name, width, width);
    weights(l, "m", width, 4 * width);
    weights(l, "n", 4 * width, width);
    for (const char* norm : {"g", "h"}) {
      text +=
          fmt::format("%{0}{1} = const f32[{2}] splat(1.0)\n%{0}b{1} = const f32[{2}] splat(0.5)\n",
                      norm, l, width);
    }
    text += fmt::format("%scale{} = const f32[] splat(8.0)\n%a{} = layer_norm(%x{}, %g{}, %gb{})\n",
                        l, l, l, l, l);
    for (const char* name : {"q", "k", "v"}) {
      text += fmt::format(
          "%{0}p{1} = matmul(%a{1}, %{0}{1})\n%{0}s{1} = add(%{0}p{1}, %{0}b{1})\n"
          "%{0}r{1} = reshape(%{0}s{1}) {{shape=[1, {2}, 12, {3}]}}\n"
          "%{0}t{1} = transpose(%{0}r{1}) {{perm=[0, 2, {4}]}}\n",
          name, l, length, width / 12, *name == 'k' ? "3, 1" : "1, 3");
    }
    text += fmt::format(
        "%s{0} = matmul(%qt{0}, %kt{0})\n%d{0} = div(%s{0}, %scale{0})\n"
        "%p{0} = softmax(%d{0}) {{axis=-1}}\n%c{0} = matmul(%p{0}, %vt{0})\n"
        "%e{0} = transpose(%c{0}) {{perm=[0, 2, 1, 3]}}\n"
        "%f{0} = reshape(%e{0}) {{shape=[1, {1}, {2}]}}\n%op{0} = matmul(%f{0}, %o{0})\n"
        "%os{0} = add(%op{0}, %ob{0})\n%y{0} = add(%x{0}, %os{0})\n"
        "%i{0} = layer_norm(%y{0}, %h{0}, %hb{0})\n%mp{0} = matmul(%i{0}, %m{0})\n"
        "%ms{0} = add(%mp{0}, %mb{0})\n%mg{0} = gelu(%ms{0})\n%np{0} = matmul(%mg{0}, %n{0})\n"
        "%ns{0} = add(%np{0}, %nb{0})\n%x{3} = add(%y{0}, %ns{0})\n",
        l, length, width, l + 1);
  }
  return text + "}\n";
}

TEST(Pipeline, ALargeTransformerGoesThrough) {
  auto graph = driver::parse_model(transformer(12, 768, 128));
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  int64_t parameters = 0;
  for (const ir::Value& v : graph->values) {
    if (v.constant != nullptr) parameters += v.type.elements();
  }
  EXPECT_GT(parameters, 80'000'000);
  auto result = tooling::run_passes(*graph, {});
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_GT(result->graph.nodes.size(), 450u);
}

}  // namespace
}  // namespace pyc::passes
