// Text tests of stages: every tests/passes/*.ir and tests/lower/*.ir. A file is
//   # dump STAGE            what to print of the model below (see `pyc dump`), for the reference
//                           device; or
//   # passes A,B            run these passes on it in this order, print the graph; followed by
//                           ` bf16` or ` f16`: with that precision
//   the model
//   --- expect              and the text it must give; or
//   --- expect-error CODE   and a part of the message.
// PYC_UPDATE_GOLDEN=1 rewrites the expected texts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/files.h"
#include "driver/compile.h"
#include "tooling/optimize.h"

namespace pyc::driver {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> stage_files() {
  std::vector<std::string> files;
  for (const char* dir : {"passes", "lower"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(PYC_SOURCE_DIR) / "tests" / dir)) {
      if (entry.path().extension() == ".ir") {
        files.push_back(std::string(dir) + "/" + entry.path().filename().string());
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream in(list);
  for (std::string name; std::getline(in, name, ',');) names.push_back(name);
  return names;
}

// The dtype behind the list of passes, and the list without it.
DType take_precision(std::string& wanted) {
  for (const DType t : {DType::kF16, DType::kBF16}) {
    const std::string word = " " + std::string(dtype_name(t));
    if (!wanted.ends_with(word)) continue;
    wanted.resize(wanted.size() - word.size());
    return t;
  }
  return DType::kF32;
}

class Stage : public testing::TestWithParam<std::string> {};

TEST_P(Stage, PrintsTheExpectedText) {
  const std::string path = std::string(PYC_SOURCE_DIR) + "/tests/" + GetParam();
  const auto file = read_file(path, 1 << 20);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  const std::string& text = *file;
  const bool only_passes = text.starts_with("# passes ");
  ASSERT_TRUE(only_passes || text.starts_with("# dump ")) << "the first line says what to do";
  const size_t head = text.find(' ', 2) + 1;
  std::string wanted = text.substr(head, text.find('\n') - head);
  const DType precision = only_passes ? take_precision(wanted) : DType::kF32;
  const size_t cut = text.find("--- expect");
  ASSERT_NE(cut, std::string::npos);
  const size_t line_end = text.find('\n', cut);
  const std::string verdict = text.substr(cut, line_end - cut);
  const std::string expected = text.substr(line_end + 1);

  const auto run = [&]() -> Result<std::string> {
    PYC_ASSIGN(ir::Graph graph, parse_model(text.substr(0, cut)));
    if (only_passes) {
      PYC_ASSIGN(const tooling::PassesResult result,
                 tooling::run_passes(std::move(graph), split(wanted), false, precision));
      return ir::print(result.graph);
    }
    CompileOptions options;
    options.device = "reference";
    options.threads = 2;
    PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(std::move(graph)));
    return dump(std::move(given), options, wanted);
  };
  const Result<std::string> found = run();
  const std::string_view error = "--- expect-error ";
  if (verdict.starts_with(error)) {
    ASSERT_FALSE(found.ok()) << *found;
    EXPECT_EQ(code_name(found.status().code()), verdict.substr(error.size()));
    const std::string part = expected.substr(0, expected.find_last_not_of('\n') + 1);
    EXPECT_NE(found.status().message().find(part), std::string::npos) << found.status().message();
    return;
  }
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  if (std::getenv("PYC_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomic(path, text.substr(0, line_end + 1) + *found).ok());
    return;
  }
  EXPECT_EQ(*found, expected);
}

INSTANTIATE_TEST_SUITE_P(Text, Stage, testing::ValuesIn(stage_files()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
});

}  // namespace
}  // namespace pyc::driver
