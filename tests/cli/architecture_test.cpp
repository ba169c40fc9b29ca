// docs/ARCHITECTURE.md shows what the program prints for the commands that it names, and every
// stage there is. (tests/docs/architecture_test.cpp writes the page anew.)

#include <map>
#include <regex>
#include <set>

#include "base/files.h"
#include "cli/program.h"

namespace pyc::test {
namespace {

std::string page() {
  return read_file(std::string(PYC_SOURCE_DIR) + "/docs/ARCHITECTURE.md", 1 << 20).value();
}

// By stage: what the page shows of it.
std::map<std::string, std::string> shown() {
  std::map<std::string, std::string> out;
  const std::string text = page();
  const std::regex block("<!-- stage: ([a-z]+) -->\n```\n([^`]*)```");
  for (std::sregex_iterator it(text.begin(), text.end(), block), end; it != end; ++it) {
    out[(*it)[1]] = (*it)[2];
  }
  return out;
}

// The first command of the page that dumps this model.
std::string command_for(const std::string& model) {
  const std::string text = page();
  const size_t begin = text.find("pyc dump " + model);
  if (begin == std::string::npos) return "";
  const size_t skip = begin + std::string("pyc ").size();
  return text.substr(skip, text.find('`', skip) - skip);
}

std::string printed(std::string command, const std::string& model, const std::string& stage) {
  const auto replace = [&](const std::string& what, const std::string& by) {
    const size_t at = command.find(what);
    if (at != std::string::npos) command.replace(at, what.size(), by);
  };
  replace(model, std::string(PYC_SOURCE_DIR) + "/" + model);
  replace("STAGE", stage);
  return pyc_out(command).text;
}

TEST(ArchitecturePage, ShowsWhatItsCommandsPrint) {
  const auto stages = shown();
  const std::string fixed = "tests/models/linear_relu.ir";
  for (const char* stage : {"graph", "passes", "groups", "dot", "loop", "plan"}) {
    ASSERT_TRUE(stages.contains(stage)) << stage;
    EXPECT_EQ(printed(command_for(fixed), fixed, stage), stages.at(stage)) << stage;
  }
  const std::string open = "tests/open_models/branch_loop.ir";
  EXPECT_EQ(printed(command_for(open), open, "open"), stages.at("open"));
  const std::string more = "--stage segments --shape x=2x4";
  ASSERT_NE(page().find("`" + more + "`"), std::string::npos);
  EXPECT_EQ(printed("dump " + open + " " + more, open, ""), stages.at("segments"));
}

// A stage that the program has and the page has not is not explained anywhere.
TEST(ArchitecturePage, ShowsEveryStageOfBothModels) {
  const Outcome refused = pyc("dump " + kMlp + " --stage nothing");
  const std::string known = "known are ";
  const size_t begin = refused.text.find(known);
  ASSERT_NE(begin, std::string::npos) << refused.text;
  const size_t list = begin + known.size();
  const std::string names = refused.text.substr(list, refused.text.find('\n', list) - list);
  const auto stages = shown();
  const std::regex name("[a-z_]+");
  int found = 0;
  for (std::sregex_iterator it(names.begin(), names.end(), name), end; it != end; ++it) {
    static const std::set<std::string> kOfCuda = {"cuda", "ptx", "sass"};  // docs/cuda.md
    if (kOfCuda.contains(it->str())) continue;
    EXPECT_TRUE(stages.contains(it->str())) << it->str();
    ++found;
  }
  EXPECT_GE(found, 9);
}

}  // namespace
}  // namespace pyc::test
