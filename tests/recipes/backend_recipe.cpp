// The backend of docs/adding-a-backend.md with the kernel of docs/adding-a-kernel.md in it.

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "driver/compile.h"
#include "driver/seeded_run.h"

namespace pyc::driver {
namespace {

CompileOptions on(const std::string& device) {
  CompileOptions options;
  options.device = device;
  options.threads = 2;
  return options;
}

// The digests of all outputs of a run on seeded inputs, joined.
std::string digests(const std::string& text, const CompileOptions& options) {
  auto graph = parse_model(text);
  if (!graph.ok()) return graph.status().to_string();
  auto model = compile(std::move(*graph), options);
  if (!model.ok()) return model.status().to_string();
  const auto run = SeededRun::create(**model, 1);
  if (!run.ok()) return run.status().to_string();
  const Status status = (*model)->run(run->inputs(), run->outputs());
  if (!status.ok()) return status.to_string();
  std::string out;
  for (size_t i = 0; i < run->outputs().size(); ++i) out += run->digest(i).hex() + "\n";
  return out;
}

TEST(BackendRecipe, HasTheBitsOfTheReference) {
  int models = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(PYC_SOURCE_DIR) + "/tests/models")) {
    if (file.path().extension() != ".ir") continue;
    const std::string text = read_file(file.path(), 1 << 20).value();
    const std::string expected = digests(text, on("reference"));
    EXPECT_EQ(digests(text, on("backwards")), expected) << file.path();
    ++models;
  }
  EXPECT_GT(models, 3);
}

constexpr const char* kCopies =
    "graph @g(%x: i32[100,300]) -> (%y) {\n"
    "  %r = reshape(%x) {shape=[300,100]}\n"
    "  %y = identity(%r)\n"
    "}\n";

TEST(KernelRecipe, IsChosenWhereItAppliesAndHasTheSameBits) {
  const std::string expected = digests(kCopies, on("reference"));
  EXPECT_EQ(digests(kCopies, on("backwards")), expected);
  CompileOptions without = on("backwards");
  without.kernels = {"copy"};
  EXPECT_EQ(digests(kCopies, without), expected);

  const auto kernels = [](const char* text, const CompileOptions& options) {
    auto graph = parse_model(text);
    auto model = compile(std::move(*graph), options);
    std::string out;
    for (const Decision& d : (*model)->decisions()) {
      if (!d.what.starts_with("kernel:")) continue;
      out += d.chosen;
      for (const Alternative& a : d.alternatives) out += " " + a.name + "(" + a.rejected + ")";
    }
    return out;
  };
  EXPECT_EQ(kernels(kCopies, on("backwards")), "copy__64k one_by_one() copy__64k()");
  EXPECT_EQ(kernels(kCopies, without), "one_by_one one_by_one() copy__64k(excluded_by_caller)");
  EXPECT_EQ(kernels("graph @g(%x: i32[6]) -> (%y) {\n  %y = neg(%x)\n}\n", on("backwards")),
            "one_by_one one_by_one() copy__64k(computes_something)");
}

}  // namespace
}  // namespace pyc::driver
