// The generator of docs/adding-a-kernel.md, and what becomes of one with another order of products.

#include <gtest/gtest.h>

#include "driver/compile.h"
#include "session/model.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

constexpr const char* kLong = "graph @g(%x: f32[3,5000]) -> (%y) {\n  %y = exp(%x)\n}\n";
constexpr const char* kShort = "graph @g(%x: f32[30]) -> (%y) {\n  %y = neg(%x)\n}\n";
constexpr const char* kProduct =
    "graph @g(%a: f32[40,50], %b: f32[50,60]) -> (%y) {\n  %y = matmul(%a, %b)\n}\n";

struct Ran {
  std::string digest;
  std::string kernels;  // the chosen ones, then all others with why they were not applicable
};

Ran run(const char* text, CompileOptions options) {
  options.threads = 2;
  options.lanes = 4;
  options.cache = false;
  auto model = session::compile(*parse_model(text), options);
  if (!model.ok()) return {model.status().to_string(), ""};
  const auto seeded = tooling::SeededRun::create(**model, 1);
  const Status status = (*model)->run(seeded->inputs(), seeded->outputs());
  if (!status.ok()) return {status.to_string(), ""};
  Ran out{seeded->digest(0).hex(), ""};
  for (const Decision& d : (*model)->decisions()) {
    if (!d.what.starts_with("kernel:")) continue;
    out.kernels += d.chosen;
    for (const Alternative& a : d.alternatives) {
      if (!a.rejected.empty()) out.kernels += " " + a.name + "(" + a.rejected + ")";
    }
  }
  return out;
}

CompileOptions on(const std::string& device) {
  CompileOptions options;
  options.device = device;
  return options;
}

TEST(KernelRecipe, IsChosenWhereItAppliesAndHasTheSameBits) {
  const Ran wide = run(kLong, on("cpu"));
  EXPECT_EQ(wide.kernels, "loop_wide__8 planted(other_order)");
  EXPECT_EQ(wide.digest, run(kLong, on("reference")).digest);

  CompileOptions without = on("cpu");
  without.kernels = {"loop_wide"};
  const Ran generic = run(kLong, without);
  EXPECT_EQ(generic.kernels,
            "loop_generic__4 loop_wide__8(excluded_by_caller) planted(other_order)");
  EXPECT_EQ(generic.digest, wide.digest);

  EXPECT_EQ(run(kShort, on("cpu")).kernels,
            "loop_generic__4 loop_wide__8(no_long_row) planted(other_order)");
}

// It costs nothing, and its bits would be others.
TEST(AKernelOfAnotherOrder, IsTakenAtTheLevelFastAlone) {
  for (const Determinism level : {Determinism::kStrict, Determinism::kBalanced}) {
    CompileOptions options = on("cpu");
    options.determinism = level;
    const Ran ran = run(kProduct, options);
    EXPECT_NE(ran.kernels.find("planted(other_order)"), std::string::npos) << ran.kernels;
    EXPECT_EQ(ran.digest, run(kProduct, on("reference")).digest);
  }
  CompileOptions fast = on("cpu");
  fast.determinism = Determinism::kFast;
  EXPECT_TRUE(run(kProduct, fast).kernels.starts_with("planted")) << run(kProduct, fast).kernels;
}

}  // namespace
}  // namespace pyc::driver
