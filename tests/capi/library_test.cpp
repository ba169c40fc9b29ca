// The shared library as others see it. PYC_UPDATE_GOLDEN=1 rewrites the lists of symbols and
// layouts.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "support/temp_folder.h"

namespace {

std::string output_of(const std::string& command, int* exit) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> chunk{};
  while (size_t n = fread(chunk.data(), 1, chunk.size(), pipe)) text.append(chunk.data(), n);
  *exit = pclose(pipe);
  return text;
}

// The same as in the file of that name, which is written anew on demand.
void expect_as_listed(const std::string& found, const std::string& name, const char* rule) {
  const std::string path = std::string(PYC_SOURCE_DIR) + "/tests/capi/" + name;
  if (std::getenv("PYC_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << found;
  std::ostringstream expected;
  expected << std::ifstream(path).rdbuf();
  EXPECT_EQ(found, expected.str()) << rule;
}

TEST(SharedLibrary, ExportsTheListedSymbolsAlone) {
  int exit = -1;
  std::istringstream lines(
      output_of(std::string(PYC_NM) + " -D --defined-only " + PYC_SHARED_LIBRARY, &exit));
  ASSERT_EQ(exit, 0);
  std::set<std::string> names;  // nm sorts as the locale says
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(line.rfind(' ') + 1);
    // Some linkers export the standard library's own type names in spite of the list.
    const bool standard = name.starts_with("_Z") && name.find("St") < 6;
    if (!standard) names.insert(name);
  }
  std::string found;
  for (const std::string& name : names) found += name + "\n";
  expect_as_listed(found, "exported_symbols.txt", "symbols are added, never removed");
}

TEST(SharedLibrary, StructsAndNumbersAreAsListed) {
  int exit = -1;
  const std::string found = output_of(PYC_CAPI_LAYOUTS, &exit);
  ASSERT_EQ(exit, 0);
  expect_as_listed(found, "struct_layouts.txt",
                   "structs grow at their end, numbers are added; nothing else changes");
}

TEST(SharedLibrary, RunsTheCExample) {
  int exit = -1;
  const std::string text = output_of(std::string(PYC_CAPI_EXAMPLE) + " 2>&1", &exit);
  EXPECT_EQ(exit, 0) << text;
  EXPECT_NE(text.find("ran 1 steps"), std::string::npos) << text;
}

// Twice, so that the second goes on from the last checkpoint of the first.
TEST(SharedLibrary, RunsTheCExampleOfTraining) {
  const pyc::TempFolder folder;
  const std::string command = std::string(PYC_CAPI_TRAIN_EXAMPLE) + " " + folder.path() + " 2>&1";
  int exit = -1;
  const std::string first = output_of(command, &exit);
  EXPECT_EQ(exit, 0) << first;
  EXPECT_NE(first.find("\"checkpoint\":null"), std::string::npos) << first;
  EXPECT_NE(first.find("steps 200, w 3.000, loss below 1e-6: yes"), std::string::npos) << first;
  const std::string second = output_of(command, &exit);
  EXPECT_EQ(exit, 0) << second;
  EXPECT_NE(second.find("step-000000000200.safetensors"), std::string::npos) << second;
  EXPECT_NE(second.find("steps 200, w 3.000"), std::string::npos) << second;
}

}  // namespace
