// Which random numbers a node draws is settled when the node is made.

#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ops/registry.h"

namespace pyc::test {
namespace {

using ir::Attrs;
using ir::GraphBuilder;

int64_t stream_of(const ir::Node& node) { return std::get<int64_t>(node.attrs.at("stream")); }

std::vector<int64_t> streams_of(const ir::Graph& graph) {
  std::vector<int64_t> streams;
  for (const ir::Node& node : graph.nodes) streams.push_back(stream_of(node));
  return streams;
}

void draw(GraphBuilder& builder, Attrs attrs = {}) {
  attrs["shape"] = std::vector<int64_t>{3};
  const auto made = builder.op("random_uniform", {}, attrs);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
}

TEST(RandomStreams, TheBuilderNumbersNodes) {
  GraphBuilder builder(ops::all_ops());
  draw(builder);
  draw(builder);
  draw(builder, {{"stream", int64_t{40}}});
  draw(builder);
  draw(builder, {{"stream", int64_t{1}}});
  draw(builder);
  EXPECT_EQ(streams_of(builder.graph()), (std::vector<int64_t>{0, 1, 40, 41, 1, 42}));
}

TEST(RandomStreams, ABuilderGoesOnAfterTheNumbersOfItsGraph) {
  GraphBuilder first(ops::all_ops());
  draw(first, {{"stream", int64_t{6}}});
  GraphBuilder second(ops::all_ops(), std::move(first).take());
  draw(second);
  EXPECT_EQ(streams_of(second.graph()), (std::vector<int64_t>{6, 7}));
}

TEST(RandomStreams, TheTextKeepsNumbers) {
  auto graph = ir::parse(
      "graph @g() -> (%b, %a) {\n  %a = random_normal() {shape=[2]}\n"
      "  %b = random_normal() {shape=[2]}\n}\n",
      ops::all_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  EXPECT_EQ(streams_of(*graph), (std::vector<int64_t>{0, 1}));
  // Without its first node the other one is read back with the number it had.
  graph->nodes.erase(graph->nodes.begin());
  graph->outputs.pop_back();
  const auto again = ir::parse(ir::print(*graph), ops::all_ops());
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(streams_of(*again), (std::vector<int64_t>{1}));
}

TEST(RandomStreams, EveryOpThatDrawsSaysSo) {
  for (const ir::OpDef* op : ops::all_ops().all()) {
    bool has_stream = false;
    for (const ir::AttrDef& attr : op->attrs) has_stream |= attr.name == "stream";
    EXPECT_EQ(op->traits.random, has_stream) << op->name;
  }
}

}  // namespace
}  // namespace pyc::test
