// Messages and pages use the field's words. Words of this house that have one are listed here; what
// has none is in docs/GLOSSARY.md.

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"

namespace pyc::test {
namespace {

namespace fs = std::filesystem;

// "gives": returns, has, becomes. "stands": is. "behind": after. "settled": fixed. "is none": is
// not one.
const std::regex& house_words() {
  static const std::regex words(R"(\b(gives(?! up)|stands|behind|settled)\b|[^e] (is|are) none\b)");
  return words;
}

std::string text_of(const fs::path& path) {
  auto text = read_file(path.string(), 16 << 20);
  EXPECT_TRUE(text.ok()) << text.status().to_string();
  return text.ok() ? std::string(text->begin(), text->end()) : "";
}

void check_line(const fs::path& file, int number, const std::string& words) {
  EXPECT_FALSE(std::regex_search(words, house_words())) << file << ':' << number << ": " << words;
}

TEST(HouseWords, AreNotInMessages) {
  const std::regex literal(R"re("(?:[^"\\]|\\.)*")re");
  int literals = 0;
  for (const char* folder : {"src", "tools", "include"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(PYC_SOURCE_DIR) / folder)) {
      const std::string kind = entry.path().extension().string();
      if (kind != ".cpp" && kind != ".h" && kind != ".inc") continue;
      std::istringstream lines(text_of(entry.path()));
      int number = 0;
      for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.find('"') == std::string::npos) continue;
        for (std::sregex_iterator it(line.begin(), line.end(), literal), end; it != end; ++it) {
          check_line(entry.path(), number, it->str());
          ++literals;
        }
      }
    }
  }
  EXPECT_GT(literals, 5000);
}

TEST(HouseWords, AreNotInPages) {
  std::vector<fs::path> pages = {fs::path(PYC_SOURCE_DIR) / "README.md"};
  for (const auto& entry : fs::directory_iterator(fs::path(PYC_SOURCE_DIR) / "docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  EXPECT_GT(pages.size(), 15U);
  for (const fs::path& page : pages) {
    std::istringstream lines(text_of(page));
    int number = 0;
    for (std::string line; std::getline(lines, line);) check_line(page, ++number, line);
  }
}

}  // namespace
}  // namespace pyc::test
