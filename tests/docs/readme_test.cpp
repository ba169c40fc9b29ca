// Every folder with code in it says in at most 15 lines what comes in, what goes out and where to
// start.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/files.h"

namespace pyc {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxLines = 15;
constexpr std::array<std::string_view, 6> kCode = {".cpp", ".h", ".py", ".js", ".cu", ".cases"};

// Folders whose files are data of the folder above: planted faults, samples, programs of others.
constexpr std::array<std::string_view, 4> kData = {"tests/lint/", "tests/policy/samples",
                                                   "tests/packages/", "python/tests/ort_scripts"};

bool holds_code(const fs::path& folder) {
  return std::any_of(fs::directory_iterator(folder), fs::directory_iterator(), [](const auto& f) {
    return std::ranges::count(kCode, f.path().extension().string()) > 0;
  });
}

bool is_data(const std::string& folder) {
  return folder.find("__pycache__") != std::string::npos ||
         std::ranges::any_of(kData, [&](std::string_view d) { return folder.starts_with(d); });
}

TEST(Readmes, AreThereAndShort) {
  const fs::path root = PYC_SOURCE_DIR;
  int folders = 0;
  for (const char* top : {"src", "tools", "bench", "python", "scripts", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string name = fs::relative(entry.path(), root).string();
      if (!entry.is_directory() || !holds_code(entry.path()) || is_data(name)) continue;
      ++folders;
      const auto text = read_file((entry.path() / "README.md").string(), 1 << 20);
      ASSERT_TRUE(text.ok()) << text.status().to_string();
      EXPECT_GT(text->size(), 100u) << name;
      EXPECT_LE(std::count(text->begin(), text->end(), '\n'), kMaxLines) << name;
    }
  }
  EXPECT_GT(folders, 70);
}

}  // namespace
}  // namespace pyc
