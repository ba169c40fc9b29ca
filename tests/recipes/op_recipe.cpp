// The op of docs/adding-an-op.md is known to import, export and the random graphs by its own file:
// nothing else of this program names it.

#include <gtest/gtest.h>

#include <algorithm>

#include "export/round_trip.h"
#include "ops/registry.h"
#include "support/draw.h"

namespace pyc::test {
namespace {

TEST(OpRecipe, IsWrittenAsOnnxAndReadAgain) {
  auto graph =
      ir::parse("graph @g(%x: f32[3,5]) -> (%y) {\n  %y = lorentzian(%x)\n}\n", ops::all_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  const auto bytes = onnx::export_model(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status().to_string();
  EXPECT_NE(bytes->find("Lorentzian"), std::string::npos);
  EXPECT_NE(bytes->find("com.example"), std::string::npos);
  auto again = import_again(*bytes);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  ASSERT_EQ(again->nodes.size(), 1U);
  EXPECT_EQ(again->nodes[0].op, graph->nodes[0].op);
  const auto before = outputs_of(std::move(*graph));
  const auto after = outputs_of(std::move(*again));
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(*before, *after);
}

TEST(OpRecipe, IsDrawn) {
  const ir::OpDef* op = ops::all_ops().find("lorentzian");
  ASSERT_NE(op, nullptr);
  std::vector<std::string> faults;
  const auto drawn = [&](DType t) {
    return std::ranges::find(all_pairs(&faults), Pair{op, t}) != all_pairs().end();
  };
  EXPECT_TRUE(drawn(DType::kF32) && drawn(DType::kF16));
  EXPECT_FALSE(drawn(DType::kI32));
  EXPECT_EQ(faults, std::vector<std::string>{});
}

}  // namespace
}  // namespace pyc::test
