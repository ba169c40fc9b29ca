// Graphs are shrunk as far as a planted fault allows, and stay valid.

#include "tooling/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "driver/compile.h"
#include "support/draw.h"

namespace pyc::driver {
namespace {

constexpr int64_t kTries = 3000;

ir::Graph parsed(std::string_view text) { return parse_model(text).value(); }

// The fault: there is a node of the op.
tooling::ReduceCheck has(std::string_view op, int64_t least_elements = 0) {
  return [=](const ir::Graph& g) {
    return std::any_of(g.nodes.begin(), g.nodes.end(), [&](const ir::Node& n) {
      return n.op->name == op && g.type(n.outputs[0]).elements() >= least_elements;
    });
  };
}

TEST(Reduce, LeavesTheFaultAlone) {
  const auto small = tooling::reduce_graph(parsed(R"(
    graph @g(%x: f32[8,16], %z: f32[8,16]) -> (%e, %f) {
      %w = const f32[16,32] random(seed=1, lo=-1.0, hi=1.0)
      %a = matmul(%x, %w)
      %b = relu(%a)
      %c = softmax(%b)
      %d = tanh(%c)
      %e = exp(%d)
      %f = add(%x, %z)
    })"),
                                           has("softmax"), kTries);
  ASSERT_TRUE(small.ok()) << small.status().to_string();
  EXPECT_EQ(ir::print(*small),
            "graph @g(%b: f32[1,1]) -> (%c) {\n"
            "  %c = softmax(%b) {axis=-1} : f32[1,1]\n"
            "}\n");
}

TEST(Reduce, KeepsWhatTheFaultNeeds) {
  // 12 elements at least, through a reshape that names them.
  const auto small = tooling::reduce_graph(parsed(R"(
    graph @g(%x: f32[6,8]) -> (%y) {
      %k = const f32[48] random(seed=1, lo=-1.0, hi=1.0)
      %a = reshape(%x) {shape=[48]}
      %b = add(%a, %k)
      %y = neg(%b)
    })"),
                                           has("add", 12), kTries);
  ASSERT_TRUE(small.ok()) << small.status().to_string();
  EXPECT_EQ(small->nodes.size(), 1U);
  const int64_t left = small->type(small->outputs[0]).elements();
  EXPECT_GE(left, 12);
  EXPECT_LE(left, 13);
}

TEST(Reduce, SkipsNodesInTheMiddle) {
  const auto both = [](const ir::Graph& g) { return has("exp")(g) && has("sqrt")(g); };
  const auto small = tooling::reduce_graph(parsed(R"(
    graph @g(%x: f32[4]) -> (%e) {
      %a = exp(%x)
      %b = neg(%a)
      %c = abs(%b)
      %e = sqrt(%c)
    })"),
                                           both, kTries);
  ASSERT_TRUE(small.ok()) << small.status().to_string();
  EXPECT_EQ(small->nodes.size(), 2U) << ir::print(*small);
}

TEST(Reduce, RefusesAModelWithoutTheFault) {
  const auto small = tooling::reduce_graph(parsed("graph @g(%x: f32[2]) -> (%y) { %y = relu(%x) }"),
                                           has("exp"), kTries);
  EXPECT_EQ(small.status().code(), Code::kInvalidArgument);
}

TEST(Reduce, StopsAfterItsTries) {
  int64_t tried = 0;
  const auto count = [&](const ir::Graph& g) {
    ++tried;
    return has("relu")(g);
  };
  const auto small = tooling::reduce_graph(
      parsed("graph @g(%x: f32[64]) -> (%z) { %y = relu(%x) %z = relu(%y) }"), count, 3);
  ASSERT_TRUE(small.ok());
  EXPECT_LE(tried, 4);  // the model itself is one more
}

// Whatever is left of a random graph is one node and what it cannot do without.
TEST(Reduce, ShrinksRandomGraphsToOneNode) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    test::DrawOptions options;
    options.max_nodes = 12;
    const test::DrawnGraph drawn = test::draw_graph(seed, options);
    const std::string_view op = drawn.pairs.back().op->name;
    const auto small = tooling::reduce_graph(drawn.graph, has(op), kTries);
    ASSERT_TRUE(small.ok()) << small.status().to_string();
    EXPECT_EQ(small->nodes.size(), 1U) << "seed " << seed << "\n" << ir::print(*small);
    EXPECT_TRUE(has(op)(*small));
    EXPECT_TRUE(ir::verify_graph(*small).ok());
  }
}

}  // namespace
}  // namespace pyc::driver
