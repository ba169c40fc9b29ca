// The index of docs/decisions lists every decision under its title, and says which number is
// missing.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/files.h"

namespace pyc::test {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(PYC_SOURCE_DIR) / "docs" / "decisions";

std::string text_of(const fs::path& path) { return read_file(path.string(), 1 << 20).value(); }

TEST(Decisions, AreListedUnderTheirTitlesAndNumbers) {
  const std::string index = text_of(kFolder / "README.md");
  std::set<int> numbers;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename();
    if (name == "README.md") continue;
    const std::string text = text_of(entry.path());
    ASSERT_TRUE(text.starts_with("# ")) << name;
    const std::string title = text.substr(2, text.find('\n') - 2);
    EXPECT_EQ(title.find_first_of("0123456789"), std::string::npos) << "a number in: " << title;
    const std::string row = fmt::format("| [{}]({}) | {} |\n", name.substr(0, 4), name, title);
    EXPECT_NE(index.find(row), std::string::npos) << row;
    EXPECT_TRUE(numbers.insert(std::stoi(name.substr(0, 4))).second) << name;
  }
  for (int n = 1; n < *numbers.rbegin(); ++n) {
    if (numbers.contains(n)) continue;
    EXPECT_NE(index.find(fmt::format("no {:04}", n)), std::string::npos) << n;
  }
}

}  // namespace
}  // namespace pyc::test
