#pragma once

// The graphs that the planner is measured on: the committed models and graphs of the generator.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "driver/devices.h"
#include "driver/select.h"
#include "lower/lower.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "plan/plan.h"
#include "support/draw.h"

namespace pyc::plan {

struct SuiteGraph {
  std::string name;
  ir::Graph graph;
};

inline std::vector<std::filesystem::path> committed_models() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(PYC_SOURCE_DIR "/tests/models")) {
    if (entry.path().extension() == ".ir") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline ir::Graph read_graph(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  auto graph = ir::parse(text.str(), ops::all_ops());
  EXPECT_TRUE(graph.ok()) << file << graph.status().to_string();
  return std::move(graph).value();
}

// The committed models, then drawn graphs of 8 to 64 nodes.
inline SuiteGraph suite_graph(size_t index) {
  const std::vector<std::filesystem::path> models = committed_models();
  if (index < models.size()) return {models[index].filename(), read_graph(models[index])};
  test::DrawOptions options;
  options.max_nodes = 8 + static_cast<int>(index % 8) * 8;
  return {"drawn_" + std::to_string(index), test::draw_graph(index, options).graph};
}

// What the pipeline has before the planner, for the cpu with two threads.
struct Planned {
  lower::LoweredGraph lowered;
  std::vector<lower::KernelNeeds> needs;
};

inline Result<Planned> lowered_for_plan(const ir::Graph& graph, bool fuse) {
  PYC_ASSIGN(ir::VerifiedGraph verified, ir::verify_graph(graph));
  DecisionLog log;
  PYC_ASSIGN(const ir::VerifiedGraph canonical,
             passes::run_pipeline(verified, ops::all_ops(), {}, &log));
  PYC_ASSIGN(lower::LoweredGraph lowered, lower::lower_graph(canonical, {.fuse = fuse}));
  PYC_ASSIGN(const backends::Backend* cpu, driver::find_backend("cpu"));
  PYC_ASSIGN(
      driver::Selection selection,
      driver::select_kernels(lowered, *cpu, {.threads = 2, .lanes = 0, .target = ""}, {}, false));
  return Planned{std::move(lowered), std::move(selection.needs)};
}

// The first `count` graphs of the suite, every other one without fusing.
inline void each_planned(size_t count, const std::function<void(const Planned&)>& body) {
  for (size_t index = 0; index < count; ++index) {
    const SuiteGraph suite = suite_graph(index);
    SCOPED_TRACE(suite.name);
    const auto made = lowered_for_plan(suite.graph, index % 2 == 0);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    body(*made);
  }
}

}  // namespace pyc::plan
