// Pages that point to a test, a log or a source file for what they claim point to one that is
// there.

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "base/files.h"

namespace pyc::test {
namespace {

namespace fs = std::filesystem;

class NamedPaths : public testing::TestWithParam<const char*> {};

TEST_P(NamedPaths, AreThere) {
  const fs::path root = PYC_SOURCE_DIR;
  const fs::path page = root / GetParam();
  const auto text = read_file(page.string(), 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  int found = 0;
  const std::regex named("`((?:src|tests|docs|bench|scripts|include)/[^`* ]*)`");
  for (std::sregex_iterator it(text->begin(), text->end(), named), end; it != end; ++it) {
    EXPECT_TRUE(fs::exists(root / (*it)[1].str())) << (*it)[1].str();
    ++found;
  }
  const std::regex linked("\\]\\(([^)#:]+)\\)");
  for (std::sregex_iterator it(text->begin(), text->end(), linked), end; it != end; ++it) {
    EXPECT_TRUE(fs::exists(page.parent_path() / (*it)[1].str())) << (*it)[1].str();
    ++found;
  }
  EXPECT_GT(found, 10);
}

INSTANTIATE_TEST_SUITE_P(Pages, NamedPaths,
                         testing::Values("README.md", "docs/GLOSSARY.md", "docs/NUMERICS.md"),
                         [](const auto& info) { return fs::path(info.param).stem().string(); });

}  // namespace
}  // namespace pyc::test
