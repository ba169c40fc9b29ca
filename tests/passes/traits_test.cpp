// What ops say about themselves, held against what their lowering does.

#include <gtest/gtest.h>

#include <optional>

#include "lower/probe.h"
#include "ops/registry.h"

namespace pyc::passes {
namespace {

// The op over inputs of one shape, or of two that broadcast; nothing where it takes other inputs.
std::optional<ir::Graph> graph_of(const ir::OpDef& op, DType t, bool broadcast) {
  ir::GraphBuilder builder(ops::all_ops());
  std::vector<ir::ValueId> inputs;
  for (int i = 0; i < op.min_inputs; ++i) {
    const bool condition = op.min_inputs == 3 && i == 0;
    const ir::Shape shape = broadcast && i > 0 ? ir::Shape{1, 5} : ir::Shape{3, 5};
    inputs.push_back(
        builder.input("x" + std::to_string(i), {condition ? DType::kBool : t, shape}).value());
  }
  ir::Attrs attrs;
  if (op.name == "cast") attrs["to"] = DType::kF64;
  const auto made = builder.op(op.name, inputs, attrs);
  if (!made.ok()) return {};
  EXPECT_TRUE(builder.output(*made).ok());
  return std::move(builder).take();
}

TEST(Traits, ElementwiseOpsReadTheSameIndexOnly) {
  int checked = 0;
  for (const ir::OpDef* op : ops::all_ops().all()) {
    if (!op->traits.elementwise) continue;
    ASSERT_NE(op->lower, nullptr) << op->name;
    for (const bool broadcast : {false, true}) {
      std::optional<ir::Graph> graph = graph_of(*op, DType::kF32, broadcast);
      if (!graph) graph = graph_of(*op, DType::kI32, broadcast);
      if (!graph) graph = graph_of(*op, DType::kBool, broadcast);
      ASSERT_TRUE(graph) << op->name << " takes none of the inputs tried";
      lower::Probe probe =
          lower::probe_node(*graph, 0, 0, std::vector<bool>(graph->values.size(), false));
      EXPECT_TRUE(probe.pointwise()) << op->name;
      const loop::ExprId column =
          probe.pool.binary(loop::Op::kFloorMod, probe.linear, probe.pool.integer(5));
      for (const lower::ProbeRead& read : probe.reads) {
        EXPECT_FALSE(read.guarded) << op->name;
        EXPECT_EQ(read.offset, read.elements == 15 ? probe.linear : column) << op->name;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 40);
}

TEST(Traits, CommutativeOpsHaveTwoInputsAndAreElementwise) {
  for (const ir::OpDef* op : ops::all_ops().all()) {
    if (!op->traits.commutative) continue;
    EXPECT_EQ(op->min_inputs, 2) << op->name;
    EXPECT_EQ(op->max_inputs, 2) << op->name;
    EXPECT_TRUE(op->traits.elementwise) << op->name;
  }
}

TEST(Traits, OpsWithRulesHaveOneOutput) {
  for (const ir::OpDef* op : ops::all_ops().all()) {
    EXPECT_TRUE(op->simplify == nullptr || op->outputs == 1) << op->name;
  }
}

}  // namespace
}  // namespace pyc::passes
