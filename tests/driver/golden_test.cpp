// Every model of tests/models gives the committed digests, whatever computes it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/files.h"
#include "driver/compile.h"
#include "session/model.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = fs::path(PYC_SOURCE_DIR) / "tests" / "models";
const fs::path kGolden = fs::path(PYC_SOURCE_DIR) / "tests" / "golden" / "digests.txt";

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kModels)) {
    if (entry.path().extension() == ".ir") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "model output digest" lines.
std::map<std::string, std::string> read_golden() {
  std::map<std::string, std::string> golden;
  std::ifstream in(kGolden);
  std::string model;
  std::string output;
  std::string digest;
  while (in >> model >> output >> digest) golden[model + " " + output] = digest;
  return golden;
}

std::map<std::string, std::string> run(const std::string& name, const CompileOptions& options) {
  auto text = read_file((kModels / (name + ".ir")).string(), 1 << 24);
  if (!text.ok()) throw std::runtime_error(text.status().to_string());
  auto graph = parse_model(*text);
  if (!graph.ok()) throw std::runtime_error(graph.status().to_string());
  auto model = session::compile(std::move(*graph), options);
  if (!model.ok()) throw std::runtime_error(model.status().to_string());
  auto data = tooling::SeededRun::create(**model, 0, AlignedBuffer::Mode::kGuarded);
  if (!data.ok()) throw std::runtime_error(data.status().to_string());
  std::map<std::string, std::string> digests;
  for (int pass = 0; pass < 2; ++pass) {  // the second finds the arena dirty
    const Status status = (*model)->run(data->inputs(), data->outputs());
    if (!status.ok()) throw std::runtime_error(status.to_string());
    if (!data->intact()) throw std::runtime_error("memory around an output was written");
    for (size_t i = 0; i < (*model)->outputs().size(); ++i) {
      const std::string key = name + " " + (*model)->outputs()[i].name;
      const std::string hex = data->digest(i).hex();
      if (pass == 1 && digests[key] != hex) throw std::runtime_error(key + " changed between runs");
      digests[key] = hex;
    }
  }
  return digests;
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void expect_golden(const CompileOptions& options, const std::string& what) {
    static const std::map<std::string, std::string> golden = read_golden();
    for (const auto& [key, digest] : run(GetParam(), options)) {
      const auto it = golden.find(key);
      ASSERT_NE(it, golden.end()) << "no golden digest for " << key << ": " << digest;
      EXPECT_EQ(digest, it->second) << key << " on " << what;
    }
  }
};

TEST_P(Golden, Reference) {
  CompileOptions options;
  options.determinism = Determinism::kStrict;
  options.device = "reference";
  expect_golden(options, "reference");
  options.fuse = false;
  expect_golden(options, "reference without fusion");
}

TEST_P(Golden, CpuAtEveryWidthAndThreadCount) {
  for (int lanes : {0, 4, 8, 16}) {
    for (int threads : {1, 2, 7}) {
      CompileOptions options;
      options.determinism = Determinism::kStrict;
      options.lanes = lanes;
      options.threads = threads;
      expect_golden(options,
                    "cpu lanes " + std::to_string(lanes) + " threads " + std::to_string(threads));
    }
  }
}

TEST_P(Golden, CpuUnderHostileSettings) {
  CompileOptions options;
  options.threads = 3;
  options.cache = false;
  options.reuse = false;
  expect_golden(options, "cpu without reuse");
  options.reuse = true;
  options.fuse = false;
  expect_golden(options, "cpu without fusion");
  options.fuse = true;
  options.kernels = {"f32_matmul"};
  expect_golden(options, "cpu without matmul kernels");
  options.lanes = 4;
  expect_golden(options, "cpu without matmul kernels, narrow");
  options.lanes = 0;
  options.determinism = Determinism::kFast;
  options.kernels = {};
  expect_golden(options, "cpu fast");
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::ValuesIn(model_names()),
                         [](const auto& info) { return info.param; });

// PYC_UPDATE_GOLDEN=1 writes the digests of the reference instead of checking them.
TEST(GoldenFile, IsUpToDateOrRewritten) {
  std::ostringstream text;
  CompileOptions options;
  options.determinism = Determinism::kStrict;
  options.device = "reference";
  for (const std::string& name : model_names()) {
    for (const auto& [key, digest] : run(name, options)) text << key << " " << digest << "\n";
  }
  if (std::getenv("PYC_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomic(kGolden.string(), text.str()).ok());
  }
  const auto stored = read_file(kGolden.string(), 1 << 20);
  ASSERT_TRUE(stored.ok()) << stored.status().to_string();
  EXPECT_EQ(*stored, text.str());
}

}  // namespace
}  // namespace pyc::driver
