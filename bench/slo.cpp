// pyc_bench_slo: writes a run log for scripts/slo.py, a line of JSON an event: compiles of
// tests/models/mlp.ir without a cache, a trace of compiles that the cache of the process may
// answer, runs, and budgets. Run it in the project's folder.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "driver/compile.h"
#include "session/cache.h"
#include "session/model.h"
#include "session/session.h"
#include "tooling/seeded_run.h"

namespace {

using namespace pyc;

constexpr int kUncached = 40;
constexpr int kRequests = 1000;
constexpr int kRuns = 2000;
constexpr int kBudgets = 40;

ir::Graph graph_of(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  auto graph = driver::parse_model(text.str());
  if (!graph.ok()) throw std::runtime_error(file.string() + ": " + graph.status().to_string());
  return std::move(graph).value();
}

void compile(const std::string& name, const ir::Graph& graph, bool cache) {
  driver::CompileOptions options;
  options.cache = cache;
  const int64_t began = now_ns();
  const auto model = session::compile(graph, options);
  const double ms = static_cast<double>(now_ns() - began) / 1e6;
  if (!model.ok()) throw std::runtime_error(name + ": " + model.status().to_string());
  fmt::print(
      "{{\"event\": \"compile\", \"model\": \"{}\", \"ms\": {:.3f}, \"asked_cache\": {}, "
      "\"hit\": {}}}\n",
      name, ms, cache, (*model)->stats().cache_hit);
}

void run(const std::string& name, const ir::Graph& graph) {
  auto model = session::Session::create(graph, {});
  if (!model.ok()) throw std::runtime_error(model.status().to_string());
  auto data = tooling::SeededRun::create(*(*model)->whole(), 1);
  if (!data.ok()) throw std::runtime_error(data.status().to_string());
  for (int i = 0; i < kRuns; ++i) {
    const int64_t before = (*model)->stats().fallbacks;
    const int64_t began = now_ns();
    const Status status = (*model)->run_whole(data->inputs(), data->outputs(), nullptr);
    const double us = static_cast<double>(now_ns() - began) / 1e3;
    fmt::print(
        "{{\"event\": \"run\", \"model\": \"{}\", \"us\": {:.2f}, \"ok\": {}, \"fallbacks\": "
        "{}}}\n",
        name, us, status.ok(), (*model)->stats().fallbacks - before);
  }
}

// Budgets from nothing to more than is needed: the peak of what is compiled, or the refusal.
void budgets(const std::string& name, const ir::Graph& graph) {
  const auto unbound = session::compile(graph, {});
  if (!unbound.ok()) throw std::runtime_error(unbound.status().to_string());
  const int64_t peak = (*unbound)->memory().peak_bytes;
  for (int i = 1; i <= kBudgets; ++i) {
    driver::CompileOptions options;
    options.memory_budget = std::max<int64_t>(1, peak * 5 / 4 * i / kBudgets);
    const auto model = session::compile(graph, options);
    const bool named =
        !model.ok() && model.status().message().find("memory_budget") != std::string::npos;
    fmt::print(
        "{{\"event\": \"budget\", \"model\": \"{}\", \"bytes\": {}, \"peak\": {}, "
        "\"refused_by_name\": {}}}\n",
        name, options.memory_budget, model.ok() ? (*model)->memory().peak_bytes : -1, named);
  }
}

int write_log() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/models")) {
    if (entry.path().extension() == ".ir") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  const ir::Graph mlp = graph_of("tests/models/mlp.ir");
  for (int i = 0; i < kUncached; ++i) compile("mlp.ir", mlp, false);
  std::vector<ir::Graph> graphs;
  for (const auto& file : files) graphs.push_back(graph_of(file));
  std::mt19937 random(17);
  for (int i = 0; i < kRequests; ++i) {
    const size_t which = random() % graphs.size();
    compile(files[which].filename().string(), graphs[which], true);
  }
  run("mlp.ir", mlp);
  budgets("mlp.ir", mlp);
  return 0;
}

}  // namespace

int main() {
  try {
    return write_log();
  } catch (const std::exception& e) {
    std::cerr << "pyc_bench_slo: " << e.what() << '\n';
    return 1;
  }
}
