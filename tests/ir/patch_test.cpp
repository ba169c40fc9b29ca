// Patches: edits that are seen before they are made, checked, printed and taken back.

#include "ir/patch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/registry.h"

namespace pyc::ir {
namespace {

Graph parsed(std::string_view text) {
  auto graph = parse(text, ops::all_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  return std::move(*graph);
}

ValueId named(const Graph& graph, std::string_view name) {
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    if (graph.value(v).name == name) return v;
  }
  ADD_FAILURE() << "no value " << name;
  return kNoId;
}

constexpr std::string_view kChain = R"(graph @g(%x: f32[2]) -> (%c) {
  %k = const f32[2] splat(2.0)
  %a = exp(%x) : f32[2]
  %b = mul(%a, %k) : f32[2]
  %c = neg(%b) : f32[2]
}
)";

TEST(Patch, WithoutEditsChangesNothing) {
  Graph graph = parsed(kChain);
  const auto changed = Patch(graph, ops::all_ops()).apply();
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
  EXPECT_EQ(print(graph), kChain);
}

TEST(Patch, ReplacedNodesGoAndNewOnesTakeTheirNames) {
  Graph graph = parsed(kChain);
  Patch patch(graph, ops::all_ops());
  patch.at(1);
  const ValueId sum = patch.op("add", {named(graph, "a"), named(graph, "a")});
  patch.replace(named(graph, "b"), sum);
  EXPECT_EQ(patch.to_string(), "new %b.0 = add(%a, %a)\n%b -> %b.0\n");
  EXPECT_TRUE(patch.producer(named(graph, "b")).is("add"));
  EXPECT_EQ(patch.node(2).input(0), sum);
  EXPECT_EQ(print(graph), kChain) << "nothing happens before apply";
  ASSERT_TRUE(patch.apply().value());
  EXPECT_EQ(print(graph), R"(graph @g(%x: f32[2]) -> (%c) {
  %a = exp(%x) : f32[2]
  %b = add(%a, %a) : f32[2]
  %c = neg(%b) : f32[2]
}
)");
  EXPECT_TRUE(verify_graph(graph).ok());
}

TEST(Patch, UndoTakesBackEverythingAfterAMark) {
  Graph graph = parsed(kChain);
  Patch patch(graph, ops::all_ops());
  patch.at(2);
  patch.replace(named(graph, "b"), named(graph, "a"));
  const size_t mark = patch.edits();
  const std::string before = patch.to_string();
  patch.constant({DType::kF32, {}}, splat_data({DType::kF32, {}}, 1.0));
  const ValueId relu = patch.op("relu", {named(graph, "a")});
  patch.replace(named(graph, "c"), relu);
  patch.replace(named(graph, "c"), relu);
  EXPECT_FALSE(patch.ok());
  patch.undo_to(mark);
  EXPECT_TRUE(patch.ok());
  EXPECT_EQ(patch.to_string(), before);
  EXPECT_EQ(patch.current(named(graph, "c")), named(graph, "c"));
  patch.undo_to(0);
  EXPECT_FALSE(patch.apply().value());
  EXPECT_EQ(print(graph), kChain);
}

// The refusal of the edits that `make` asks for, which also leave the graph as it was.
std::string refusal(void (*make)(Patch&, const Graph&)) {
  Graph graph = parsed(kChain);
  Patch patch(graph, ops::all_ops());
  make(patch, graph);
  const auto applied = patch.apply();
  EXPECT_EQ(print(graph), kChain);
  return applied.ok() ? "accepted" : applied.status().message();
}

TEST(Patch, RefusesWhatWouldBreakTheGraph) {
  EXPECT_EQ(refusal([](Patch& p, const Graph& g) {
              p.at(0);
              p.op("neg", {named(g, "a")});
            }),
            "patch: op 'neg' before node 0 reads %a, which is made only later");
  EXPECT_EQ(refusal([](Patch& p, const Graph& g) { p.replace(named(g, "a"), named(g, "b")); }),
            "patch: %a cannot become %b: it does not stand before it");
  EXPECT_EQ(refusal([](Patch& p, const Graph& g) { p.replace(named(g, "x"), named(g, "a")); }),
            "patch: %x cannot become %a: it is no result or constant of the graph");
  EXPECT_EQ(refusal([](Patch& p, const Graph& g) {
              const ValueId one = p.constant({DType::kF32, {}}, splat_data({DType::kF32, {}}, 1));
              p.replace(named(g, "b"), one);
            }),
            "patch: %b cannot become %a.0: their types are f32[2] and f32[]");
  EXPECT_EQ(refusal([](Patch& p, const Graph&) { p.op("ad", {}); }), "patch: unknown op 'ad'");
  EXPECT_EQ(refusal([](Patch& p, const Graph&) { p.op("neg", {999}); }),
            "patch: op 'neg' reads value 999, which does not exist");
  EXPECT_EQ(refusal([](Patch& p, const Graph& g) { p.replace(named(g, "c"), 999); }),
            "patch: %c cannot become value 999: there is no such value");
}

TEST(Patch, ConstantsMayReplaceOneAnother) {
  Graph graph = parsed(R"(graph @g(%x: f32[2]) -> (%a, %l) {
  %k = const f32[2] splat(2.0)
  %l = const f32[2] splat(2.0)
  %a = add(%x, %l)
}
)");
  Patch patch(graph, ops::all_ops());
  patch.replace(named(graph, "l"), named(graph, "k"));
  ASSERT_TRUE(patch.apply().value());
  EXPECT_EQ(print(graph), R"(graph @g(%x: f32[2]) -> (%a, %k) {
  %k = const f32[2] splat(2.0)
  %a = add(%x, %k) : f32[2]
}
)");
}

TEST(Patch, UniformConstantsAreKnownByTheirBits) {
  Graph graph = parsed(R"(graph @g() -> (%a, %b, %c, %d, %e) {
  %a = const f32[3] dense(-0.0, -0.0, -0.0)
  %b = const f32[2] dense(1.0, 2.0)
  %c = const i8[2] splat(-128)
  %d = const f32[0] dense()
  %e = const f8e4m3fn[] dense(nan)
}
)");
  const Patch patch(graph, ops::all_ops());
  EXPECT_TRUE(patch.is_uniform(graph.outputs[0], -0.0));
  EXPECT_FALSE(patch.is_uniform(graph.outputs[0], 0.0));
  EXPECT_FALSE(patch.uniform(graph.outputs[1]).has_value());
  EXPECT_TRUE(patch.is_uniform(graph.outputs[2], -HUGE_VAL)) << "the smallest integer";
  EXPECT_FALSE(patch.uniform(graph.outputs[3]).has_value());
  EXPECT_FALSE(patch.is_uniform(graph.outputs[4], HUGE_VAL)) << "fp8 has no infinity";
}

}  // namespace
}  // namespace pyc::ir
