// Every folder of src/ with code in it says in at most 15 lines what comes in, what goes out and
// where to start.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"

namespace pyc {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxLines = 15;

bool holds_code(const fs::path& folder) {
  return std::any_of(fs::directory_iterator(folder), fs::directory_iterator(), [](const auto& f) {
    return f.path().extension() == ".cpp" || f.path().extension() == ".h";
  });
}

TEST(Readmes, AreThereAndShort) {
  int folders = 0;
  for (const auto& entry : fs::recursive_directory_iterator(std::string(PYC_SOURCE_DIR) + "/src")) {
    if (!entry.is_directory() || !holds_code(entry.path())) continue;
    ++folders;
    const auto text = read_file(entry.path() / "README.md", 1 << 20);
    ASSERT_TRUE(text.ok()) << text.status().to_string();
    EXPECT_GT(text->size(), 100u) << entry.path();
    EXPECT_LE(std::count(text->begin(), text->end(), '\n'), kMaxLines) << entry.path();
  }
  EXPECT_GT(folders, 20);
}

}  // namespace
}  // namespace pyc
