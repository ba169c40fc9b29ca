// docs/ARCHITECTURE.md shows what the program prints. PYC_UPDATE_GOLDEN=1 rewrites the page.

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "base/files.h"
#include "driver/compile.h"
#include "model_file/load.h"
#include "support/verified.h"

namespace pyc::driver {
namespace {

const std::string kPage = std::string(PYC_SOURCE_DIR) + "/docs/ARCHITECTURE.md";
const std::string kModel = std::string(PYC_SOURCE_DIR) + "/tests/models/linear_relu.ir";
const std::string kOpenModel = std::string(PYC_SOURCE_DIR) + "/tests/open_models/branch_loop.ir";
constexpr std::string_view kMarker = "<!-- stage: ";
constexpr size_t kAsmLines = 40;

// Lines that name the LLVM build or the CPU rather than the code.
bool is_code(const std::string& line) {
  for (const char* prefix : {"; ModuleID", "source_filename", "target ", "attributes ", "!",
                             "\t.file", "\t.ident", "\t.section\t\".note"}) {
    if (line.starts_with(prefix)) return false;
  }
  return true;
}

std::string shown(const std::string& stage, const std::string& text) {
  if (stage != "llvm" && stage != "asm") return text;
  std::istringstream in(text);
  std::string out;
  size_t lines = 0;
  for (std::string line; std::getline(in, line);) {
    if (!is_code(line)) continue;
    if (stage == "asm" && ++lines > kAsmLines) break;
    out += line + "\n";
  }
  while (out.size() > 1 && out.ends_with("\n\n")) out.pop_back();
  return stage == "asm" ? out + "…\n" : out;
}

// Stages of the open model, whose batch is 2.
std::string dumped_open(const std::string& stage) {
  const auto model = model_file::load_model_file(kOpenModel);
  if (!model.ok()) return model.status().to_string();
  open::ShapeChoice shapes;
  if (stage == "segments") shapes.dims["N"] = 2;
  const auto text = stage == "open" ? text_of(*model, shapes)
                                    : model_file::segments_of(*model, shapes, CompileOptions{});
  return text.ok() ? *text : text.status().to_string();
}

std::string dumped(const std::string& stage) {
  if (stage == "open" || stage == "segments") return dumped_open(stage);
  const auto text = read_file(kModel, 1 << 20);
  auto graph = parse_model(*text);
  CompileOptions options;
  options.threads = 2;
  options.target = "aarch64_neon";
  if (stage == "llvm" || stage == "asm") options.kernels = {"f32_matmul", "loop_generic__16"};
  const auto dump = driver::dump(test::verified(std::move(*graph)), options, stage);
  if (!dump.ok()) return dump.status().to_string();
  return shown(stage, *dump);
}

// The page with every stage's block replaced by what the program prints.
std::string rendered(const std::string& page) {
  std::string out;
  size_t at = 0;
  for (;;) {
    const size_t marker = page.find(kMarker, at);
    if (marker == std::string::npos) return out + page.substr(at);
    const size_t name = marker + kMarker.size();
    const std::string stage = page.substr(name, page.find(" -->", name) - name);
    const size_t begin = page.find("```\n", name) + 4;
    const size_t end = page.find("```", begin);
    out += page.substr(at, begin - at) + dumped(stage);
    at = end;
  }
}

TEST(Architecture, ShowsWhatTheProgramPrints) {
  const auto page = read_file(kPage, 1 << 20);
  ASSERT_TRUE(page.ok()) << page.status().to_string();
  const std::string expected = rendered(*page);
  if (std::getenv("PYC_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomic(kPage, expected).ok());
    return;
  }
  EXPECT_EQ(*page, expected);
}

}  // namespace
}  // namespace pyc::driver
