// What is refused, and the forms that need care.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "export/round_trip.h"
#include "import/onnx/proto.h"
#include "ops/registry.h"

namespace pyc::test {
namespace {

ir::Graph parsed(std::string_view text) {
  auto graph = ir::parse(text, ops::all_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  return std::move(*graph);
}

std::string exported(const ir::Graph& graph) {
  auto bytes = onnx::export_model(graph);
  EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
  return bytes.ok() ? *bytes : std::string();
}

int64_t opset_of(const std::string& bytes) {
  auto model = onnx::parse_model(std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return model->opsets.at(0).version;
}

TEST(Export, AllNodesWithoutARuleAreNamed) {
  const auto bytes =
      onnx::export_model(parsed("graph @g(%x: i32[2]) -> (%b, %c) {\n"
                                "  %a = random_uniform() {shape=[2], seed=1}\n"
                                "  %b = add(%a, %a)\n"
                                "  %c = shift_left(%x, %x)\n}\n"));
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().code(), Code::kUnsupported);
  EXPECT_EQ(bytes.status().message(),
            "2 nodes cannot be exported to ONNX: 'a' (random_uniform): ONNX fixes no random "
            "numbers; 'c' (shift_left): shifts of signed integers");
}

TEST(Export, ProductsLeftInF32ReadConvertedOperands) {
  const ir::Graph graph = parsed(
      "graph @g(%x: bf16[3,40], %w: bf16[40,5], %b: bf16[5]) -> (%y) {\n"
      "  %p = gemm(%x, %w, %b) {to=f32}\n  %g = gelu(%p)\n  %y = cast(%g) {to=bf16}\n}\n");
  const std::string bytes = exported(graph);
  const auto model = onnx::parse_model(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  std::string ops;
  for (const auto& node : model->graph.nodes) ops += std::string(node.op) + " ";
  EXPECT_EQ(ops, "Cast Cast Cast Gemm Gelu Cast ");
  auto again = import_again(bytes);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  const auto before = outputs_of(graph);
  const auto after = outputs_of(std::move(*again));
  ASSERT_TRUE(before.ok() && after.ok()) << after.status().to_string();
  EXPECT_TRUE(*before == *after);
}

TEST(Export, AWideProductOfThreeIsRefusedByName) {
  const auto bytes = onnx::export_model(
      parsed("graph @g(%x: f16[2,3]) -> (%y) {\n"
             "  %y = einsum(%x, %x, %x) {equation=\"ij,ij,ij->i\", to=f32}\n}\n"));
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().message(),
            "1 nodes cannot be exported to ONNX: 'y' (einsum): with `to` ONNX would not round what "
            "is joined first");
}

// As ONNX Runtime takes it.
TEST(Export, AMaskHasTwoDimsAtLeast) {
  auto graph = ir::parse(
      "graph @g(%q: f32[1,2,3,4], %k: f32[1,2,5,4], %v: f32[1,2,5,4], %m: f32[5]) -> (%y) {\n"
      "  %y, %key, %value, %qk = attention(%q, %k, %v, %m) {with=\"mask\"}\n}\n",
      ops::all_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  const auto bytes = onnx::export_model(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status().to_string();
  auto again = import_again(*bytes);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  bool found = false;
  for (const ir::Node& node : again->nodes) {
    if (node.inputs.size() < 4) continue;
    EXPECT_EQ(again->type(node.inputs[3]).shape, (ir::Shape{1, 5}));
    found = true;
  }
  EXPECT_TRUE(found);
  const auto before = outputs_of(std::move(*graph));
  const auto after = outputs_of(std::move(*again));
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(*before, *after);
}

TEST(Export, OutputsThatAreInputsConstantsOrNamedTwiceStay) {
  const ir::Graph graph = parsed(
      "graph @g(%x: f32[2]) -> (%x, %k, %y, %y) {\n"
      "  %k = const f32[] dense(2.5)\n"
      "  %y = mul(%x, %k)\n}\n");
  auto again = import_again(exported(graph));
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  ASSERT_EQ(again->outputs.size(), 4u);
  EXPECT_EQ(again->value(again->outputs[1]).type.rank(), 0);
  const auto before = outputs_of(graph);
  const auto after = outputs_of(std::move(*again));
  ASSERT_TRUE(before.ok() && after.ok()) << after.status().to_string();
  EXPECT_TRUE(*before == *after);
}

TEST(Export, TheOpsetIsTheOldestThatHasEverything) {
  EXPECT_EQ(opset_of(exported(parsed("graph @g(%x: f32[2]) -> (%y) {\n  %y = relu(%x)\n}\n"))), 21);
  EXPECT_EQ(opset_of(exported(parsed("graph @g(%x: f32[2]) -> (%y) {\n  %y = swish(%x)\n}\n"))),
            24);
  EXPECT_EQ(opset_of(exported(parsed("graph @g(%x: f4e2m1[2]) -> (%x) {\n}\n"))), 23);
}

TEST(Export, ElementsBelowAByteArePacked) {
  const ir::Graph graph = parsed(
      "graph @g() -> (%a, %b) {\n"
      "  %a = const i4[3] dense(-8, 7, -1)\n"
      "  %b = const u2[5] dense(0, 1, 2, 3, 1)\n}\n");
  const std::string bytes = exported(graph);
  const auto model = onnx::parse_model(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->graph.initializers[0].raw, "\x78\x0f");
  EXPECT_EQ(model->graph.initializers[1].raw.size(), 2u);
  auto again = import_again(bytes);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_TRUE(*outputs_of(graph) == *outputs_of(std::move(*again)));
}

// ONNX Runtime does not run the node that ONNX has for it.
TEST(Export, AZeroPointForEachChannelIsTakenOffAfterTheConvolution) {
  for (const int groups : {1, 2}) {
    const ir::Graph graph = parsed(fmt::format(
        "graph @g() -> (%y) {{\n"
        "  %x = const u8[2,4,5,5] random(seed=1, lo=0.0, hi=256.0)\n"
        "  %w = const i8[6,{},3,3] random(seed=2, lo=-128.0, hi=128.0)\n"
        "  %xz = const u8[] splat(131)\n"
        "  %wz = const i8[6] dense(-3, 0, 7, 127, -128, 1)\n"
        "  %y = conv_integer(%x, %w, %xz, %wz) {{pads=[1, 0, 1, 2], strides=[2, 1], group={}}}\n"
        "}}\n",
        4 / groups, groups));
    const std::string bytes = exported(graph);
    const auto model = onnx::parse_model(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(model.ok());
    for (const auto& node : model->graph.nodes) {
      if (node.op == "ConvInteger") {
        EXPECT_EQ(node.inputs.size(), 3u);
      }
    }
    auto again = import_again(bytes);
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    EXPECT_TRUE(*outputs_of(graph) == *outputs_of(std::move(*again)));
  }
}

TEST(Export, MadeUpNamesAreNewOnes) {
  const ir::Graph graph = parsed(
      "graph @g(%export.0: f32[2]) -> (%y) {\n"
      "  %y = reshape(%export.0) {shape=[2,1]}\n}\n");
  auto again = import_again(exported(graph));
  ASSERT_TRUE(again.ok()) << again.status().to_string();
}

}  // namespace
}  // namespace pyc::test
