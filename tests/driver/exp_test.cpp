// exp where its result is below all normal numbers, and where it is 0: what a mask hides.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "session/model.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

std::string digest_of_exp(const std::string& text, const char* device, int lanes) {
  CompileOptions options;
  options.device = device;
  options.lanes = lanes;
  auto model = session::compile(parse_model(text).value(), options);
  if (!model.ok()) return model.status().to_string();
  const auto seeded = tooling::SeededRun::create(**model, 1);
  if (!seeded.ok()) return seeded.status().to_string();
  const Status status = (*model)->run(seeded->inputs(), seeded->outputs());
  return status.ok() ? seeded->digest(0).hex() : status.to_string();
}

// Each of them in every lane of a vector of 16, the others beside it.
TEST(CpuExp, LowArgumentsHaveTheBitsOfTheReference) {
  std::vector<std::string> values = {
      "-104.0", "-104.00001", "-103.99999", "-103.98", "-103.97", "-103.9", "-100.0", "-88.0",
      "nan",    "-inf",       "-3.4e+38",   "inf",     "0.0",     "-0.0",   "-87.0",  "1.5"};
  std::string list;
  for (size_t turn = 0; turn < values.size(); ++turn) {
    for (const std::string& v : values) list += (list.empty() ? "" : ", ") + v;
    std::rotate(values.begin(), values.begin() + 1, values.end());
  }
  const std::string text = "graph @g(%x: f32[256]) -> (%y) {\n  %zero = const f32[] splat(0)\n" +
                           ("  %c = const f32[256] dense(" + list + ")\n") +
                           "  %z = mul(%x, %zero)\n  %s = add(%z, %c)\n  %y = exp(%s)\n}\n";
  const std::string expected = digest_of_exp(text, "reference", 0);
  for (const int lanes : {4, 8, 16}) EXPECT_EQ(digest_of_exp(text, "cpu", lanes), expected);
}

}  // namespace
}  // namespace pyc::driver
