// docs/training.md shows what differentiate and make_step give. PYC_UPDATE_GOLDEN=1 rewrites the
// page.

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "autograd/gradient.h"
#include "base/files.h"
#include "driver/compile.h"
#include "ops/registry.h"
#include "train/step.h"

namespace pyc::autograd {
namespace {

const std::string kPage = std::string(PYC_SOURCE_DIR) + "/docs/training.md";

// Begin and end of the block behind a marker.
std::pair<size_t, size_t> block_of(const std::string& page, const std::string& name) {
  const size_t marker = page.find("<!-- gradient: " + name + " -->\n```\n");
  EXPECT_NE(marker, std::string::npos) << name;
  const size_t begin = page.find("```\n", marker) + 4;
  return {begin, page.find("```\n", begin)};
}

void put_block(std::string& page, const std::string& name, const std::string& text) {
  const auto [begin, end] = block_of(page, name);
  page.replace(begin, end - begin, text);
}

ir::ValueId id_of(const ir::Graph& graph, std::string_view name) {
  ir::ValueId v = 0;
  while (graph.value(v).name != name) ++v;
  return v;
}

// The step of the model on the page, and what the stages make of it.
void put_step(std::string& page) {
  const auto [begin, end] = block_of(page, "model");
  auto graph = ir::parse(page.substr(begin, end - begin), ops::all_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  const ir::VerifiedGraph model = ir::verify_graph(std::move(*graph)).value();
  const auto step = train::make_step(model, {}, ops::all_ops());
  ASSERT_TRUE(step.ok()) << step.status().to_string();
  put_block(page, "step", ir::print(*step->graph));
  driver::CompileOptions options;
  options.threads = 2;
  options.target = "aarch64_neon";
  for (size_t i = 0; i < step->state.size(); ++i) {
    const ir::Graph& g = *step->graph;
    options.states.emplace_back(g.value(g.inputs[step->first_inputs() + i]).name,
                                g.value(g.outputs[train::Step::kResults + i]).name);
  }
  for (const std::string stage : {"passes", "groups", "loop", "plan"}) {
    const auto shown = driver::dump(step->graph, options, stage);
    ASSERT_TRUE(shown.ok()) << shown.status().to_string();
    put_block(page, "step " + stage, *shown);
  }
}

TEST(TrainingPage, ShowsWhatIsComputed) {
  const std::string page = read_file(kPage, 1 << 20).value();
  const auto [begin, end] = block_of(page, "forward");
  auto graph = ir::parse(page.substr(begin, end - begin), ops::all_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  const ir::VerifiedGraph forward = ir::verify_graph(std::move(*graph)).value();
  const std::array wanted{id_of(*forward, "w")};
  const auto joined = differentiate(forward, id_of(*forward, "loss"), wanted, ops::all_ops());
  ASSERT_TRUE(joined.ok()) << joined.status().to_string();
  const auto passed = driver::dump(*joined, {}, "passes");
  ASSERT_TRUE(passed.ok()) << passed.status().to_string();
  std::string now = page;
  put_block(now, "joined", ir::print(**joined));
  put_block(now, "passes", *passed);
  put_step(now);
  if (std::getenv("PYC_UPDATE_GOLDEN") != nullptr && now != page) {
    ASSERT_TRUE(write_file_atomic(kPage, std::string_view(now)).ok());
    return;
  }
  EXPECT_EQ(now, page);
}

}  // namespace
}  // namespace pyc::autograd
