#include "support/capability_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "base/files.h"

namespace pyc::test {
namespace {

const std::string kPage = PYC_SOURCE_DIR "/docs/capabilities.md";
constexpr const char* kDevices[] = {"cpu", "reference"};

std::string line_start(const std::string& op) { return "| `" + op + "` |"; }

std::string op_of(const std::string& line) { return line.substr(3, line.find('`', 3) - 3); }

std::vector<std::string> page_lines() {
  std::istringstream in(read_file(kPage, 1 << 20).value());
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void write_row(const std::string& op, const std::string& row) {
  std::vector<std::string> lines = page_lines();
  const auto begin = std::find(lines.begin(), lines.end(), "|---|---|---|") + 1;
  auto at = std::find_if(begin, lines.end(), [&](const std::string& line) {
    return !line.starts_with("| `") || op_of(line) >= op;
  });
  if (at != lines.end() && at->starts_with(line_start(op))) {
    *at = row;
  } else {
    lines.insert(at, row);
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  ASSERT_TRUE(write_file_atomic(kPage, text).ok());
}

}  // namespace

std::string capability_row(const std::string& op, const RanTypes& ran) {
  std::string row = line_start(op);
  for (const char* device : kDevices) {
    const auto it = ran.find(device);
    if (it == ran.end() || it->second.empty()) row += " –";
    if (it != ran.end()) {
      for (const DType t : it->second) row += " " + std::string(dtype_name(t));
    }
    row += " |";
  }
  return row;
}

void expect_on_page(const std::string& op, const RanTypes& ran) {
  const std::string row = capability_row(op, ran);
  if (std::getenv("PYC_UPDATE_GOLDEN") != nullptr) write_row(op, row);
  const std::vector<std::string> lines = page_lines();
  EXPECT_NE(std::find(lines.begin(), lines.end(), row), lines.end())
      << "docs/capabilities.md has no line\n  " << row << "\nPYC_UPDATE_GOLDEN=1 writes it";
}

std::vector<std::string> ops_on_page() {
  std::vector<std::string> ops;
  for (const std::string& line : page_lines()) {
    if (line.starts_with("| `")) ops.push_back(op_of(line));
  }
  return ops;
}

}  // namespace pyc::test
