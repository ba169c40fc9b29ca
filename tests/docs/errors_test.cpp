// docs/errors.md has a row for every status code, and no other.

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "base/files.h"
#include "base/status.h"

namespace pyc {
namespace {

TEST(ErrorsPage, ListsEveryCodeOnce) {
  const auto page = read_file(std::string(PYC_SOURCE_DIR) + "/docs/errors.md", 1 << 20);
  ASSERT_TRUE(page.ok()) << page.status().to_string();
  std::multiset<std::string> listed;
  const std::regex row("\\| `([a-z_]+)` \\|");
  for (std::sregex_iterator it(page->begin(), page->end(), row), end; it != end; ++it) {
    listed.insert((*it)[1]);
  }
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code) {
    EXPECT_EQ(listed.count(std::string(code_name(static_cast<Code>(code)))), 1u)
        << code_name(static_cast<Code>(code));
  }
  EXPECT_EQ(listed.size(), static_cast<size_t>(Code::kInternal) + 1);
}

}  // namespace
}  // namespace pyc
