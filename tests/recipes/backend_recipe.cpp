// The backend of docs/adding-a-backend.md.

#include <gtest/gtest.h>

#include <filesystem>

#include "artifact/artifact.h"
#include "base/files.h"
#include "session/artifacts.h"
#include "session/model.h"
#include "support/verified.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

CompileOptions on(const std::string& device) {
  CompileOptions options;
  options.device = device;
  options.threads = 2;
  return options;
}

// The digests of all outputs of a run on seeded inputs, joined.
std::string digests(const Result<std::unique_ptr<runtime::Model>>& model) {
  if (!model.ok()) return model.status().to_string();
  const auto run = tooling::SeededRun::create(**model, 1);
  if (!run.ok()) return run.status().to_string();
  const Status status = (*model)->run(run->inputs(), run->outputs());
  if (!status.ok()) return status.to_string();
  std::string out;
  for (size_t i = 0; i < run->outputs().size(); ++i) out += run->digest(i).hex() + "\n";
  return out;
}

std::string digests(const std::string& text, const CompileOptions& options) {
  return digests(session::compile(*parse_model(text), options));
}

// The same by way of a file's bytes.
std::string digests_of_file(const std::string& text, const CompileOptions& options) {
  auto made = session::compile_artifact(test::verified(*parse_model(text)), options);
  if (!made.ok()) return made.status().to_string();
  auto pieces = artifact::encode(*made);
  if (!pieces.ok()) return pieces.status().to_string();
  std::vector<std::byte> file;
  for (const SharedBytes& piece : *pieces) file.insert(file.end(), piece.begin(), piece.end());
  auto loaded = session::load_artifact(std::move(file), options);
  if (!loaded.ok()) return loaded.status().to_string();
  return digests(std::move(loaded->model));
}

TEST(BackendRecipe, HasTheBitsOfTheReference) {
  int models = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(PYC_SOURCE_DIR) + "/tests/models")) {
    if (file.path().extension() != ".ir") continue;
    const std::string text = read_file(file.path(), 1 << 20).value();
    const std::string expected = digests(text, on("reference"));
    EXPECT_EQ(digests(text, on("backwards")), expected) << file.path();
    EXPECT_EQ(digests_of_file(text, on("backwards")), expected) << file.path();
    ++models;
  }
  EXPECT_GT(models, 3);
}

}  // namespace
}  // namespace pyc::driver
