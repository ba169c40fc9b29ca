// What opset 28 brought or made precise, in small.

#include <cmath>

#include "onnx/run_model.h"

namespace pyc::onnx::test {
namespace {

constexpr int64_t kOpset = 28;

DynValue i64(Ints shape, const std::vector<int64_t>& values) {
  DynValue v;
  v.kind = DynValue::Kind::kTensor;
  v.dtype = DType::kI64;
  v.shape = std::move(shape);
  v.bytes = shared(raw_of(values));
  return v;
}

Graph two_inputs(const std::string& op, const std::vector<int64_t>& shape,
                 const std::vector<Bytes>& attrs) {
  return {.inputs = {value("a", kF32, shape), value("b", kF32, shape)},
          .outputs = {unshaped("y", kF32)},
          .nodes = {node(op, {"a", "b"}, {"y"}, attrs, "the_node")}};
}

TEST(OnnxOpset28, ModOfFloatsHasTheDivisorsSign) {
  const std::vector<DynValue> in{f32({6}, {-7.5F, 7.5F, -7.5F, 4, -4, 0}),
                                 f32({6}, {2, -2, -2, 2, 2, -3})};
  const Graph g = two_inputs("Mod", {6}, {});
  EXPECT_EQ(numbers_of(run(model(g, kOpset), in)), (std::vector<double>{0.5, -0.5, -1.5, 0, 0, 0}));
  expect_refused(run(model(g, kOpset - 1), in), Code::kInvalidArgument, "fmod must be 1");
}

TEST(OnnxOpset28, SwiGluIsAGate) {
  const Graph g = two_inputs("SwiGLU", {2}, {attr_float("alpha", 1.0F)});
  const auto out = numbers_of(run(model(g, kOpset), {f32({2}, {0, 1}), f32({2}, {5, 2})}));
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0], 0.0);
  EXPECT_NEAR(out[1], 2.0 / (1.0 + std::exp(-1.0)), 1e-6);
}

TEST(OnnxOpset28, SpaceToDepthKnowsBothModes) {
  Graph g{.inputs = {value("x", kF32, {1, 2, 2, 2})},
          .outputs = {unshaped("y", kF32)},
          .nodes = {node("SpaceToDepth", {"x"}, {"y"},
                         {attr_int("blocksize", 2), attr_string("mode", "CRD")}, "s2d")}};
  const std::vector<DynValue> in{f32({1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})};
  EXPECT_EQ(numbers_of(run(model(g, kOpset), in)), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
  g.nodes = {node("SpaceToDepth", {"x"}, {"y"}, {attr_int("blocksize", 2)}, "s2d")};
  EXPECT_EQ(numbers_of(run(model(g, kOpset), in)), (std::vector<double>{0, 4, 1, 5, 2, 6, 3, 7}));
}

// The indices count the elements of the shape that kernel and strides give: 4 by 4 here.
TEST(OnnxOpset28, MaxUnpoolPlacesBeforeItGrows) {
  Graph g{
      .inputs = {value("x", kF32, {1, 1, 2, 2}), value("i", kI64, {1, 1, 2, 2})},
      .outputs = {unshaped("y", kF32)},
      .initializers = {ints("shape", {1, 1, 5, 5})},
      .nodes = {node("MaxUnpool", {"x", "i", "shape"}, {"y"},
                     {attr_ints("kernel_shape", {2, 2}), attr_ints("strides", {2, 2})}, "unpool")}};
  const std::vector<DynValue> in{f32({1, 1, 2, 2}, {5, 6, 7, 8}),
                                 i64({1, 1, 2, 2}, {5, 7, 13, 15})};
  EXPECT_EQ(numbers_of(run(model(g), in)),
            (std::vector<double>{0, 0, 0, 0, 0, 0, 5, 0, 6, 0, 0, 0, 0,
                                 0, 0, 0, 7, 0, 8, 0, 0, 0, 0, 0, 0}));
  g.initializers = {ints("shape", {1, 5, 5})};
  expect_refused(run(model(g), in), Code::kShapeMismatch, "output_shape");
}

}  // namespace
}  // namespace pyc::onnx::test
