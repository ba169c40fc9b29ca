// The backend of docs/adding-a-backend.md.

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "driver/compile.h"
#include "driver/seeded_run.h"

namespace pyc::driver {
namespace {

CompileOptions on(const std::string& device) {
  CompileOptions options;
  options.device = device;
  options.threads = 2;
  return options;
}

// The digests of all outputs of a run on seeded inputs, joined.
std::string digests(const std::string& text, const CompileOptions& options) {
  auto graph = parse_model(text);
  if (!graph.ok()) return graph.status().to_string();
  auto model = compile(std::move(*graph), options);
  if (!model.ok()) return model.status().to_string();
  const auto run = SeededRun::create(**model, 1);
  if (!run.ok()) return run.status().to_string();
  const Status status = (*model)->run(run->inputs(), run->outputs());
  if (!status.ok()) return status.to_string();
  std::string out;
  for (size_t i = 0; i < run->outputs().size(); ++i) out += run->digest(i).hex() + "\n";
  return out;
}

TEST(BackendRecipe, HasTheBitsOfTheReference) {
  int models = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(PYC_SOURCE_DIR) + "/tests/models")) {
    if (file.path().extension() != ".ir") continue;
    const std::string text = read_file(file.path(), 1 << 20).value();
    const std::string expected = digests(text, on("reference"));
    EXPECT_EQ(digests(text, on("backwards")), expected) << file.path();
    ++models;
  }
  EXPECT_GT(models, 3);
}

}  // namespace
}  // namespace pyc::driver
