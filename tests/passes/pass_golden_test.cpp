// The pipeline on a graph with something for every pass: the graph that comes out and what was
// said about it (tests/golden/simple_pipeline_after.txt; PYC_UPDATE_GOLDEN=1 rewrites it), and the
// kernels that grouping makes of it.

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "driver/compile.h"
#include "support/verified.h"
#include "tooling/optimize.h"

namespace pyc::driver {
namespace {

const std::string kGolden = std::string(PYC_SOURCE_DIR) + "/tests/golden/simple_pipeline";

std::string rendered() {
  const std::string text = read_file(kGolden + ".ir", 1 << 20).value();
  auto result = tooling::run_passes(parse_model(text).value(), {});
  if (!result.ok()) return result.status().to_string();
  std::string out = ir::print(result->graph);
  for (const Decision& d : result->log) out += d.to_string() + "\n";
  CompileOptions options;
  options.threads = 1;
  options.device = "reference";
  return out + dump(test::verified(parse_model(text).value()), options, "groups").value();
}

TEST(PassGolden, SimplePipelineAfter) {
  const std::string found = rendered();
  if (std::getenv("PYC_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomic(kGolden + "_after.txt", found).ok());
  }
  const auto expected = read_file(kGolden + "_after.txt", 1 << 20);
  ASSERT_TRUE(expected.ok()) << expected.status().to_string();
  EXPECT_EQ(found, *expected);
  for (int run = 0; run < 100; ++run) ASSERT_EQ(rendered(), found);
}

}  // namespace
}  // namespace pyc::driver
