// Models keep every bit on their way through ONNX.

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "export/round_trip.h"
#include "import/onnx/proto.h"
#include "tooling/optimize.h"

namespace pyc::test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> models() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(PYC_SOURCE_DIR) / "tests" / "models")) {
    if (entry.path().extension() == ".ir") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

ir::Graph load(const fs::path& path) {
  auto text = read_file(path.string(), 1 << 24);
  EXPECT_TRUE(text.ok()) << text.status().to_string();
  auto graph = driver::parse_model(*text);
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  return std::move(*graph);
}

std::vector<std::string> names(const ir::Graph& graph, const std::vector<ir::ValueId>& ids) {
  std::vector<std::string> out;
  for (const ir::ValueId id : ids) {
    out.push_back(graph.value(id).name + ": " + graph.type(id).to_string());
  }
  return out;
}

class Models : public testing::TestWithParam<fs::path> {};

TEST_P(Models, ComeBackWithTheSameNamesAndBits) {
  const ir::Graph graph = load(GetParam());
  const auto bytes = onnx::export_model(graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status().to_string();
  auto again = import_again(*bytes);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(names(graph, graph.inputs), names(*again, again->inputs));
  const auto model = onnx::parse_model(std::as_bytes(std::span(*bytes)));
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  ASSERT_EQ(model->graph.outputs.size(), graph.outputs.size());
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    EXPECT_EQ(model->graph.outputs[i].name, graph.value(graph.outputs[i]).name);
    EXPECT_EQ(again->type(again->outputs[i]), graph.type(graph.outputs[i]));
  }
  const auto before = outputs_of(graph);
  const auto after = outputs_of(std::move(*again));
  ASSERT_TRUE(before.ok()) << before.status().to_string();
  ASSERT_TRUE(after.ok()) << after.status().to_string();
  EXPECT_TRUE(*before == *after);
}

// What the passes make of a model is expressible too. Resampling is a sum ONNX orders otherwise.
TEST_P(Models, ComeBackAfterThePasses) {
  auto passes = tooling::run_passes(load(GetParam()), {});
  ASSERT_TRUE(passes.ok()) << passes.status().to_string();
  const auto bytes = onnx::export_model(passes->graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status().to_string();
  auto again = import_again(*bytes);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  const auto before = outputs_of(std::move(passes->graph));
  const auto after = outputs_of(std::move(*again));
  ASSERT_TRUE(before.ok()) << before.status().to_string();
  ASSERT_TRUE(after.ok()) << after.status().to_string();
  ASSERT_EQ(before->size(), after->size());
  const bool resamples = GetParam().stem() == "unet";
  for (size_t i = 0; i < before->size(); ++i) {
    EXPECT_TRUE((*before)[i] == (*after)[i] || (resamples && close((*after)[i], (*before)[i])));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Models, testing::ValuesIn(models()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace pyc::test
