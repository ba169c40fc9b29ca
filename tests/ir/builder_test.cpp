#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ir/test_ops.h"

namespace pyc::ir {
namespace {

using testing::f32;
using testing::must;
using testing::test_ops;

class GraphBuilderTest : public ::testing::Test {
 protected:
  GraphBuilder builder_{test_ops()};
};

TEST_F(GraphBuilderTest, BuildsAVerifiedGraph) {
  const ValueId x = must(builder_.input("x", f32({2, 3})));
  const ValueId half = must(builder_.scalar(DType::kF32, 0.5));
  const ValueId y = must(builder_.op("mul", {x, half}, {}, "y"));
  const ValueId halves = must(builder_.op("split", {y}));
  ASSERT_TRUE(builder_.output(halves + 1).ok());
  EXPECT_EQ(builder_.type(halves), f32({2, 2}));
  EXPECT_EQ(builder_.type(halves + 1), f32({2, 1}));
  const Graph graph = std::move(builder_).take();
  EXPECT_EQ(graph.name, "main");
  EXPECT_TRUE(verify_graph(graph).ok());
  EXPECT_EQ(graph.value(y).name, "y");
  EXPECT_EQ(graph.nodes[1].attrs.size(), 2u);
}

TEST_F(GraphBuilderTest, MadeUpNamesAreUnique) {
  const ValueId x = must(builder_.input("v0", f32({2})));
  must(builder_.input("s.1", f32({2})));
  must(builder_.op("split", {x}, {}, "s"));
  for (int i = 0; i < 5; ++i) must(builder_.op("relu", {x}));
  must(builder_.op("split", {x}));
  ASSERT_TRUE(builder_.output(x).ok());
  EXPECT_TRUE(verify_graph(builder_.graph()).ok());
  EXPECT_EQ(builder_.graph().value(2).name, "s");
  EXPECT_EQ(builder_.graph().value(3).name, "s.1.0");
}

struct Refusal {
  Status status;
  Code code;
  std::string message;
};

TEST_F(GraphBuilderTest, Refusals) {
  const ValueId x = must(builder_.input("x", f32({2, 3})));
  const auto dense = [](size_t n) { return dense_data(std::vector<std::byte>(n)); };
  const Code invalid = Code::kInvalidArgument;
  const Refusal refusals[] = {
      {builder_.input("", f32({})).status(), invalid, "[bad_name] an input needs a name"},
      {builder_.input("x", f32({})).status(), invalid,
       "[duplicate_name] there is a value %x already"},
      {builder_.input("y", f32({-1})).status(), invalid,
       "[bad_dim] input %y: f32[-1]: expected dims of at least 0, found -1 as dim 0"},
      {builder_.constant(f32({2}), nullptr).status(), invalid,
       "[bad_constant] constant: there is no data"},
      {builder_.constant(f32({2}), dense(7), "c").status(), invalid,
       "[bad_constant] constant %c: expected 8 bytes for f32[2], found 7"},
      {builder_.constant(f32({2}), dense(8), "x").status(), invalid,
       "[duplicate_name] there is a value %x already"},
      {builder_.scalar(static_cast<DType>(50), 1.0).status(), invalid,
       "[bad_dtype] dtype#50 is not one of the 25 dtypes"},
      {builder_.op("matmull", {x, x}).status(), Code::kUnknownOp,
       "unknown op 'matmull', did you mean 'matmul'?"},
      {builder_.op("Conv", {x}, {}, "", "conv1").status(), Code::kUnknownOp,
       "unknown op 'Conv' from 'conv1'"},
      {builder_.op("relu", {x}, {}, "x").status(), invalid,
       "[duplicate_name] op 'relu': there is a value %x already"},
      {builder_.op("relu", {77}).status(), invalid,
       "[bad_id] op 'relu': expected a value id under 1, found 77"},
      {builder_.op("add", {x}).status(), invalid,
       "[too_few_inputs] op 'add': expected 2 inputs, found 1"},
      {builder_.op("relu", {x, x}).status(), invalid,
       "[too_many_inputs] op 'relu': expected 1 input, found 2"},
      {builder_.op("stack", {}).status(), invalid,
       "[too_few_inputs] op 'stack': expected at least 1 input, found 0"},
      {builder_.op("cast", {x}).status(), invalid,
       "[missing_attr] op 'cast' needs attribute 'to' (dtype)"},
      {builder_.op("matmul", {x, x}, {}, "", "fc1").status(), Code::kShapeMismatch,
       "'fc1': op 'matmul': expected equal inner dims, found 3 and 2"},
      {builder_.output(9), invalid, "[bad_id] expected a value id under 1, found 9"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_EQ(refusal.status.code(), refusal.code) << refusal.message;
    EXPECT_EQ(refusal.status.message(), refusal.message);
  }
  // Nothing refused left a trace.
  EXPECT_EQ(builder_.graph().values.size(), 1u);
  EXPECT_TRUE(builder_.graph().nodes.empty());
}

TEST_F(GraphBuilderTest, TypesThatGrowTooLargeAreRefused) {
  ValueId x = must(builder_.input("x", f32({1 << 20})));
  for (int i = 0; i < 2; ++i) x = must(builder_.op("stack", std::vector<ValueId>(400, x)));
  const auto grown = builder_.op("stack", {x, x});
  EXPECT_EQ(grown.status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(
      grown.status().message().starts_with("[too_large] op 'stack' returns: f32[2,400,400,"))
      << grown.status().message();
}

}  // namespace
}  // namespace pyc::ir
