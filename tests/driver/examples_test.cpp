// A small graph of every op, found by its type rule alone.

#include <gtest/gtest.h>

#include "base/sanitizers.h"
#include "driver/compile.h"
#include "tooling/tables.h"

namespace pyc::driver {
namespace {

TEST(Examples, HaveOneNodeAndAllItsOutputs) {
  size_t found = 0;
  for (const ir::OpDef* op : tooling::known_ops().all()) {
    bool any = false;
    for (const DType dtype : {DType::kF32, DType::kI64, DType::kBool}) {
      if (kSanitized && any) continue;  // each looks for all three
      const auto graph = tooling::example_graph(*op, dtype);
      if (!graph.ok()) continue;
      any = true;
      EXPECT_TRUE(ir::verify_graph(*graph).ok()) << op->name;
      ASSERT_EQ(graph->nodes.size(), 1u) << op->name;
      EXPECT_EQ(graph->outputs, graph->nodes[0].outputs) << op->name;
    }
    found += any ? 1 : 0;
  }
  // Some ops need other shapes than the search tries.
  EXPECT_GT(found * 10, tooling::known_ops().all().size() * 9);
}

TEST(Examples, SplitHasItsParts) {
  const auto graph = tooling::example_graph(*tooling::known_ops().find("split"), DType::kF32);
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  EXPECT_GE(graph->outputs.size(), 1u);
  EXPECT_LE(graph->outputs.size(), 2u);
}

}  // namespace
}  // namespace pyc::driver
