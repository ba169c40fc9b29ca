// Values that lie in memory in another order of their dims: lowered with any layouts, fused and
// not, a graph has the bits of its row-major form. Here through the interpreter, kernel by kernel;
// tests/configs/layouts.conf runs the op cases and the CPU so.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "ir/graph.h"
#include "loop/verify.h"
#include "lower/lower.h"
#include "ops/registry.h"
#include "support/draw.h"
#include "support/run_groups.h"

namespace pyc::test {
namespace {

using Bytes = std::vector<std::byte>;

// Any order for any value that may have one; how many are not row-major goes to `count`.
lower::LayoutChooser any_layouts(uint32_t seed, int* count) {
  return [seed, count](const ir::Graph& graph, const lower::LayoutFacts&) {
    std::mt19937 random(seed);
    lower::Layouts layouts;
    for (ir::ValueId v = 0; v < graph.values.size(); ++v) {
      if (!lower::may_have_layout(graph, v)) continue;
      lower::Layout order(graph.type(v).shape.size());
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      layouts.set(v, std::move(order));
      if (!layouts.is_row_major(v)) ++*count;
    }
    return layouts;
  };
}

// Number of values of the graph that were not row-major.
int check_any_layouts(const ir::Graph& graph, const std::vector<Bytes>& inputs, uint32_t seed) {
  const ir::VerifiedGraph verified = canonical(graph);
  const Outcome expected = outcome_of(verified, inputs, {.fuse = false});
  int count = 0;
  for (const bool fuse : {false, true}) {
    const lower::LowerOptions options{.fuse = fuse, .layout_chooser = any_layouts(seed, &count)};
    EXPECT_TRUE(outcome_of(verified, inputs, options) == expected) << "fuse " << fuse << "\n"
                                                                   << ir::print(*verified);
  }
  const lower::LowerOptions chosen{.layout_facts = {.tile_product = 0.03,
                                                    .generic_product = 0.1,
                                                    .read = 0.05,
                                                    .strided_read = 0.6,
                                                    .packed_read = 0.15}};
  EXPECT_TRUE(outcome_of(verified, inputs, chosen) == expected) << ir::print(*verified);
  return count;
}

TEST(Layouts, ChangeNoBitOfRandomGraphs) {
  int count = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    const DrawnGraph drawn = draw_graph(seed, {.max_nodes = 8});
    count += check_any_layouts(drawn.graph, drawn.inputs, seed);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(count, 400);
}

TEST(Layouts, ChangeNoBitOfEveryOp) {
  int count = 0;
  uint32_t seed = 0;
  for (const Pair& pair : all_pairs()) {
    if (++seed % 7 != 0) continue;
    const auto drawn = draw_node(seed, pair, Values::kWild);
    ASSERT_TRUE(drawn.ok()) << drawn.status().to_string();
    count += check_any_layouts(drawn->graph, drawn->inputs, seed);
    ASSERT_FALSE(HasFailure()) << pair.op->name;
  }
  EXPECT_GT(count, 100);
}

ir::VerifiedGraph parsed(const std::string& text) {
  auto graph = ir::parse(text, ops::all_ops());
  PYC_CHECK(graph.ok(), graph.status().to_string());
  return canonical(*graph);
}

lower::LowerOptions with_layout(const std::string& name, const lower::Layout& order) {
  return {.layout_chooser = [=](const ir::Graph& graph, const lower::LayoutFacts&) {
    lower::Layouts layouts;
    for (ir::ValueId v = 0; v < graph.values.size(); ++v) {
      if (graph.value(v).name == name) layouts.set(v, order);
    }
    return layouts;
  }};
}

const std::string kTwoSums = R"(graph @g(%x: f32[4,6]) -> (%y, %z) {
  %e = exp(%x) : f32[4,6]
  %y = reduce_sum(%e) {axes=[0], keepdims=false} : f32[6]
  %z = reduce_sum(%e) {axes=[1], keepdims=false} : f32[4]
})";

// The value is stored in its order: neighbours in memory are neighbours along the first dim.
TEST(Layouts, StoresFollowTheOrder) {
  const ir::VerifiedGraph graph = parsed(kTwoSums);
  lower::LowerOptions options = with_layout("e", {1, 0});
  options.fuse = false;
  const auto lowered = lower::lower_graph(graph, options);
  ASSERT_TRUE(lowered.ok()) << lowered.status().to_string();
  const std::string text = loop::print(lowered->groups[0].kernel);
  EXPECT_NE(text.find("b1[v0*4 + v1] = call exp(b0[v0 + v1*6])"), std::string::npos) << text;
  const bool logged =
      std::any_of(lowered->decisions.begin(), lowered->decisions.end(),
                  [](const auto& d) { return d.what == "layout:%e" && d.chosen == "dims 1 0"; });
  EXPECT_TRUE(logged);
}

TEST(Layouts, OfWhatComesInOrGoesOutAreRefused) {
  const ir::VerifiedGraph graph = parsed(kTwoSums);
  const auto refusal = [&](const std::string& name, const lower::Layout& order) {
    const auto lowered = lower::lower_graph(graph, with_layout(name, order));
    return lowered.ok() ? "" : lowered.status().message();
  };
  EXPECT_EQ(refusal("e", {1, 0}), "");
  EXPECT_EQ(refusal("x", {1, 0}), "layout of %x: it is no inner value");
  EXPECT_EQ(refusal("e", {1, 1, 0}), "layout of %e: no order of its dims");
}

}  // namespace
}  // namespace pyc::test
