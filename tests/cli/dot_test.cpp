// `pyc dump --stage dot`: text that graphviz reads, whatever the model is called.

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "cli/program.h"

namespace pyc::test {
namespace {

// Every line is one of the five kinds, and every end of an edge was declared.
void expect_dot(const std::string& text, const std::string& what) {
  const std::regex line_kinds(
      R"re(digraph "(?:[^"\\]|\\.)*" \{|  subgraph cluster_\d+ \{|  \}|\}|)re"
      R"re(    label="(?:[^"\\]|\\.)*";|  node \[shape=box, fontname="monospace"\];|)re"
      R"re(  (?:  )?(\w+) \[label="(?:[^"\\]|\\.)*"(?:, shape=\w+)?\];|  (\w+) -> (\w+);)re");
  std::set<std::string> declared;
  std::set<std::string> used;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(line, parts, line_kinds)) << what << ": " << line;
    if (parts[1].matched) {
      EXPECT_TRUE(declared.insert(parts[1]).second) << what << ": " << line;
    }
    if (parts[2].matched) used.insert({parts[2].str(), parts[3].str()});
  }
  EXPECT_TRUE(std::includes(declared.begin(), declared.end(), used.begin(), used.end())) << what;
  EXPECT_EQ(std::count(text.begin(), text.end(), '{'), std::count(text.begin(), text.end(), '}'));
  EXPECT_FALSE(used.empty()) << what;
}

TEST(Dot, DrawsEveryModel) {
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    if (entry.path().extension() != ".ir") continue;
    const Outcome out = pyc_out("dump " + entry.path().string() + " --stage dot");
    ASSERT_EQ(out.exit, 0) << entry.path();
    expect_dot(out.text, entry.path().filename());
  }
}

TEST(Dot, HasABoxForEachKernel) {
  const std::string text = pyc_out("dump " + kModels + "linear_relu.ir --stage dot").text;
  const std::regex kernel(R"(label="g0 [a-z0-9_]+";)");
  EXPECT_TRUE(std::regex_search(text, kernel)) << text;
  EXPECT_NE(text.find(R"([label="relu %y\nf32[4,16]"])"), std::string::npos) << text;
}

TEST(Dot, EscapesNames) {
  const std::string model = write_model("names.ir",
                                        "graph @\"a\\\"]; b\"(%\"x\\\" -> y\": f32[2]) -> (%y) {\n"
                                        "  %y = relu(%\"x\\\" -> y\")\n}\n");
  const Outcome out = pyc("dump " + model + " --stage dot");
  ASSERT_EQ(out.exit, 0) << out.text;
  expect_dot(out.text, "names");
}

}  // namespace
}  // namespace pyc::test
