// What is made of a constant's bytes alone, an aligned copy or a packed one, is made once for all
// programs that have the constant: the programs of one open graph for other sizes.

#include <gtest/gtest.h>

#include <cstring>

#include "driver/compile.h"
#include "exec/frame.h"
#include "model_file/load.h"
#include "open/segment.h"
#include "ops/registry.h"
#include "session/evaluate.h"

namespace pyc::test {
namespace {

constexpr std::string_view kOpenProduct = R"(open graph @product(%x: f32[N,64]) -> (%y) {
  %w = const f32[64,64] random(seed=1, lo=-1.0, hi=1.0)
  %y = onnx.MatMul[18](%x, %w)
}
)";

// The graph for a number of rows.
Result<ir::VerifiedGraph> closed(const exec::GraphTable& table, int64_t rows) {
  exec::Frame frame(table);
  DynValue x;
  x.kind = DynValue::Kind::kTensor;
  x.dtype = DType::kF32;
  x.shape = {rows, 64};
  frame.set(table.graph().inputs[0], x);
  PYC_ASSIGN(open::Segment segment,
             open::close_segment(frame.state(), ops::all_ops(), session::evaluate));
  return ir::verify_graph(std::move(segment.graph));
}

// The first parameter of the graph's program for the device.
Result<runtime::Parameter> parameter(ir::VerifiedGraph graph, const std::string& device) {
  driver::CompileOptions options;
  options.device = device;
  options.threads = 1;
  PYC_ASSIGN(const driver::Compiled compiled, driver::compile_program(std::move(graph), options));
  if (compiled.program->parameters.size() != 1) return Status(Code::kInternal, "not one parameter");
  return compiled.program->parameters[0];
}

TEST(SharedParameters, ClosingsShareConstants) {
  auto model = model_file::load_model(kOpenProduct);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const exec::GraphTable table(*model->open);
  const auto one = closed(table, 3);
  const auto other = closed(table, 5);
  ASSERT_TRUE(one.ok() && other.ok());
  const auto constant = [](const ir::Graph& graph) {
    for (const ir::Value& v : graph.values) {
      if (v.kind == ir::ValueKind::kConstant) return v.constant;
    }
    return std::shared_ptr<const ir::ConstData>();
  };
  ASSERT_NE(constant(**one), nullptr);
  EXPECT_EQ(constant(**one), constant(**other));
}

TEST(SharedParameters, PackedOnceForAllSizes) {
  auto model = model_file::load_model(kOpenProduct);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const exec::GraphTable table(*model->open);
  auto one = closed(table, 64);
  auto other = closed(table, 96);
  ASSERT_TRUE(one.ok() && other.ok());
  const auto first = parameter(*one, "cpu");
  const auto second = parameter(*other, "cpu");
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(first->data, second->data);
  // The same bytes as without the other program.
  auto alone = closed(exec::GraphTable(*model->open), 96);
  ASSERT_TRUE(alone.ok());
  const auto third = parameter(*alone, "cpu");
  ASSERT_TRUE(third.ok());
  EXPECT_NE(third->data, second->data);
  ASSERT_EQ(third->bytes, second->bytes);
  EXPECT_EQ(std::memcmp(third->data, second->data, static_cast<size_t>(third->bytes)), 0);
}

// Weights of a mapped file may lie at any address.
TEST(SharedParameters, PackedFromAnyAddress) {
  constexpr size_t kBytes = 64 * 48 * sizeof(float);
  const auto packed = [](size_t begin) {
    std::vector<std::byte> bytes(kBytes + begin);
    for (size_t i = 0; i < kBytes; ++i) bytes[begin + i] = static_cast<std::byte>(i % 63);
    const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    ir::GraphBuilder builder(ops::all_ops());
    const auto x = builder.input("x", {DType::kF32, {96, 64}});
    const auto w =
        builder.constant({DType::kF32, {64, 48}},
                         ir::dense_data(SharedBytes(kept, std::span(*kept).subspan(begin))));
    EXPECT_TRUE(builder.output(*builder.op("matmul", {*x, *w})).ok());
    return parameter(*ir::verify_graph(std::move(builder).take()), "cpu");
  };
  const auto even = packed(0);
  const auto odd = packed(1);
  ASSERT_TRUE(even.ok()) << even.status().message();
  ASSERT_TRUE(odd.ok()) << odd.status().message();
  ASSERT_EQ(even->bytes, odd->bytes);
  EXPECT_EQ(std::memcmp(even->data, odd->data, static_cast<size_t>(even->bytes)), 0);
}

TEST(SharedParameters, AlignedOnceAndOnlyWhileUsed) {
  // One byte into an aligned buffer, as in a mapped file.
  const auto bytes = std::make_shared<const std::vector<std::byte>>(4 * 8 + 1, std::byte{1});
  const auto data = ir::dense_data(SharedBytes(bytes, std::span(*bytes).subspan(1)));
  const auto graph = [&](int64_t rows) {
    ir::GraphBuilder builder(ops::all_ops());
    const auto x = builder.input("x", {DType::kF32, {rows, 8}});
    const auto b = builder.constant({DType::kF32, {8}}, data);
    const auto y = builder.op("add", {*x, *b});
    EXPECT_TRUE(builder.output(*y).ok());
    return *ir::verify_graph(std::move(builder).take());
  };
  auto first = parameter(graph(2), "reference");
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first->data) % sizeof(float), 0U);
  EXPECT_EQ(std::memcmp(first->data, data->bytes.data(), data->bytes.size()), 0);
  {
    const auto second = parameter(graph(3), "reference");
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(first->data, second->data);
  }
  // Nothing keeps what no program uses.
  EXPECT_NE(data->made.find("aligned copy").owner, nullptr);
  first->owner = nullptr;
  EXPECT_EQ(data->made.find("aligned copy").owner, nullptr);
}

}  // namespace
}  // namespace pyc::test
