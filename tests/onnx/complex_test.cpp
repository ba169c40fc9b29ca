// Complex numbers: moved about as the onnx package does it, refused by everything that computes.

#include <complex>

#include "base/files.h"
#include "driver/compile.h"
#include "onnx/run_model.h"
#include "tooling/conformance.h"

namespace pyc::onnx::test {
namespace {

constexpr int64_t kC64 = 14;
constexpr int64_t kC128 = 15;
using Numbers = std::vector<std::complex<float>>;

DynValue c64(Ints shape, const Numbers& values) {
  DynValue v;
  v.kind = DynValue::Kind::kTensor;
  v.dtype = DType::kC64;
  v.shape = std::move(shape);
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  v.bytes = std::vector<std::byte>(bytes, bytes + values.size() * sizeof values[0]);
  return v;
}

Numbers complex_of(const DynValue& value) {
  Numbers out(value.bytes.size() / sizeof(std::complex<float>));
  if (!out.empty()) std::memcpy(out.data(), value.bytes.data(), value.bytes.size());
  return out;
}

// y = op(x, more…), x c64[2,2].
Graph one_op(const std::string& op, const Names& more = {}, const std::vector<Bytes>& attrs = {}) {
  Names in = {"x"};
  in.insert(in.end(), more.begin(), more.end());
  return {.inputs = {value("x", kC64, {2, 2})},
          .outputs = {unshaped("y", kC64)},
          .nodes = {node(op, in, {"y"}, attrs, "the_node")}};
}

const DynValue kComplex = c64({2, 2}, {{1, 2}, {3, 4}, {5, 6}, {7, 8}});

void expect_complex_refused(const Graph& g, Code code, const std::string& part,
                            int64_t opset = 18) {
  const auto result = run(model(g, opset), {kComplex});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), code) << result.status().to_string();
  EXPECT_NE(result.status().message().find(part), std::string::npos) << result.status().message();
  EXPECT_EQ(result.status().node(), "the_node") << result.status().message();
}

TEST(OnnxComplex, OpsMoveThemAsTheStandardsEvaluatorDoes) {
  const std::string folder = std::string(PYC_SOURCE_DIR) + "/tests/onnx/complex";
  const auto cases = list_folder(folder);
  ASSERT_TRUE(cases.ok());
  EXPECT_EQ(cases->size(), 8U);
  for (const std::string& name : *cases) {
    for (const char* device : {"reference", "cpu"}) {
      driver::CompileOptions options;
      options.device = device;
      options.threads = 1;
      const auto result = tooling::run_case(folder + "/" + name, options, {.rtol = 0, .atol = 0});
      EXPECT_EQ(result.verdict, tooling::Verdict::kPassed) << name << ": " << result.detail;
      EXPECT_GT(result.compared, 4) << name;
      EXPECT_EQ(result.not_compared, 0) << name;
    }
  }
}

TEST(OnnxComplex, NothingComputesWithThem) {
  for (const char* op : {"Abs", "Exp", "Neg", "Sqrt", "Relu", "ReduceSum", "Softmax", "IsNaN",
                         "Unique", "RandomNormalLike", "TopK", "ArgMax"}) {
    SCOPED_TRACE(op);
    expect_complex_refused(
        one_op(op), Code::kUnsupported,
        std::string("onnx.") + op +
            " 'the_node': expected real numbers, found c64[2,2]: complex ones are moved "
            "about, and nothing is computed with them");
  }
  for (const char* op : {"Add", "Mul", "MatMul", "Equal", "Less", "Pow", "CastLike"}) {
    SCOPED_TRACE(op);
    expect_complex_refused(one_op(op, {"x"}), Code::kUnsupported, std::string("onnx.") + op);
  }
  expect_complex_refused(one_op("Cast", {}, {attr_int("to", kF32)}), Code::kUnsupported,
                         "onnx.Cast");
}

TEST(OnnxComplex, NothingBecomesComplex) {
  for (const int64_t to : {kC64, kC128}) {
    const Graph g{.inputs = {value("x", kF32, {2})},
                  .outputs = {unshaped("y", to)},
                  .nodes = {node("Cast", {"x"}, {"y"}, {attr_int("to", to)}, "the_node")}};
    const auto result = run(model(g), {f32({2}, {1, 2})});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), Code::kUnsupported);
    EXPECT_NE(result.status().message().find("complex"), std::string::npos);
  }
  Graph g{.inputs = {value("x", kI64, {1})},
          .outputs = {unshaped("y", kC64)},
          .nodes = {node("ConstantOfShape", {"x"}, {"y"},
                         {attr_tensor("value", raw_tensor("v", kC64, {1}, Bytes(8, '\0')))})}};
  const auto read_only = read(model(g));
  ASSERT_FALSE(read_only.ok());
  EXPECT_EQ(read_only.status().code(), Code::kUnsupported);
  EXPECT_NE(read_only.status().message().find("attribute 'value': expected real numbers"),
            std::string::npos)
      << read_only.status().message();
}

TEST(OnnxComplex, TypesDoNotMix) {
  Graph g = one_op("Concat", {"w"}, {attr_int("axis", 0)});
  g.initializers = {floats("w", {1, 2}, {1, 2})};
  expect_complex_refused(g, Code::kDtypeMismatch,
                         "input 1: expected complex numbers, found f32[1,2]");
  g.initializers = {raw_tensor("w", kC128, {1, 2}, Bytes(32, '\0'))};
  expect_complex_refused(g, Code::kDtypeMismatch,
                         "expected one type, found c64[2,2] and c128[1,2]");
  Graph reshape = one_op("Reshape", {"x"});
  expect_complex_refused(reshape, Code::kDtypeMismatch,
                         "input 1: expected real numbers, found c64[2,2]");
}

TEST(OnnxComplex, ScattersAddAndDoNotMultiply) {
  Graph g = one_op("ScatterND", {"at", "new"}, {attr_string("reduction", "add")});
  g.initializers = {raw_tensor("at", kI64, {1, 1}, raw_of(std::vector<int64_t>{1})),
                    raw_tensor("new", kC64, {1, 2}, raw_of(Numbers{{10, -1}, {0, 1}}))};
  const auto added = run(model(g), {kComplex});
  ASSERT_TRUE(added.ok()) << added.status().to_string();
  EXPECT_EQ(complex_of((*added)[0]), (Numbers{{1, 2}, {3, 4}, {15, 5}, {7, 9}}));
  g.nodes = {
      node("ScatterND", {"x", "at", "new"}, {"y"}, {attr_string("reduction", "mul")}, "the_node")};
  expect_complex_refused(g, Code::kUnsupported, "reduction 'mul' computes with complex numbers");
}

TEST(OnnxComplex, InterpolatingIsDoneToBothParts) {
  Graph g = one_op("Resize", {"", "scales"}, {attr_string("mode", "linear")});
  g.initializers = {floats("scales", {2}, {1, 2})};
  const auto resized = run(model(g), {kComplex});
  ASSERT_TRUE(resized.ok()) << resized.status().to_string();
  EXPECT_EQ(
      complex_of((*resized)[0]),
      (Numbers{{1, 2}, {1.5, 2.5}, {2.5, 3.5}, {3, 4}, {5, 6}, {5.5, 6.5}, {6.5, 7.5}, {7, 8}}));
  g.nodes = {node("Resize", {"x", "", "scales"}, {"y"},
                  {attr_string("mode", "linear"), attr_float("extrapolation_value", 1)},
                  "the_node")};
  expect_complex_refused(g, Code::kUnsupported, "attribute 'extrapolation_value': expected 0");
}

TEST(OnnxComplex, OptionalsHoldThem) {
  Graph g = one_op("Optional");
  g.outputs = {unshaped("got", kC64), value("there", kBool, {})};
  g.nodes.push_back(node("OptionalGetElement", {"y"}, {"got"}));
  g.nodes.push_back(node("OptionalHasElement", {"y"}, {"there"}));
  const auto result = run(model(g), {kComplex});
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(complex_of((*result)[0]), complex_of(kComplex));
  EXPECT_EQ(to_ints((*result)[1]), (Ints{1}));
}

// Real numbers around them are compiled as ever.
TEST(OnnxComplex, BreakTheGraphWithAReason) {
  Graph g{.inputs = {value("x", kC64, {2, 2}), value("a", kF32, {2})},
          .outputs = {unshaped("y", kC64), unshaped("b", kF32)},
          .nodes = {node("Transpose", {"x"}, {"y"}, {}, "turn"),
                    node("Relu", {"a"}, {"b"}, {}, "real")}};
  const auto made = session(model(g));
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ((*made)->whole(), nullptr);
  const auto result = (*made)->run(std::vector<DynValue>{kComplex, f32({2}, {-1, 2})});
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(complex_of((*result)[0]), (Numbers{{1, 2}, {5, 6}, {3, 4}, {7, 8}}));
  const auto breaks = (*made)->breaks();
  EXPECT_EQ(breaks.breaks, 1);
  EXPECT_EQ(breaks.first_node, "turn");
  EXPECT_EQ(breaks.first_reason, "complex_numbers");
  EXPECT_EQ(breaks.compiled, 1);
}

// An unused input, an output that is an input and one that is a constant.
TEST(OnnxComplex, NeedNoNode) {
  Graph g{.inputs = {value("x", kC64, {2, 2}), value("unused", kC64, {2, 2})},
          .outputs = {unshaped("x", kC64), unshaped("c", kC128)},
          .initializers = {raw_tensor("c", kC128, {1}, raw_of(std::vector<double>{1, -1}))}};
  const auto result = run(model(g), {kComplex, kComplex});
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(complex_of((*result)[0]), complex_of(kComplex));
  EXPECT_EQ((*result)[1].to_string(), "c128[1]");
  EXPECT_EQ(to_doubles((*result)[1]), (std::vector<double>{1, -1}));
}

TEST(OnnxComplex, InputsOfAnotherTypeAreRefused) {
  const auto made = session(model(one_op("Identity")));
  ASSERT_TRUE(made.ok());
  const auto real = (*made)->run(std::vector<DynValue>{f32({2, 2}, {1, 2, 3, 4})});
  EXPECT_EQ(real.status().code(), Code::kDtypeMismatch);
  EXPECT_EQ(real.status().message(), "input 'x': expected c64[2,2], found f32[2,2]");
}

TEST(OnnxComplex, ListsOfNumbersAreTheirParts) {
  Bytes pairs;
  for (const float part : {1.0F, 2.0F, 3.0F, 4.0F}) pairs += single(4, part);
  Graph g{.outputs = {unshaped("y", kC64)},
          .initializers = {header("c", kC64, {2}) + pairs},
          .nodes = {node("Identity", {"c"}, {"y"})}};
  const auto result = run(model(g), {});
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(complex_of((*result)[0]), (Numbers{{1, 2}, {3, 4}}));
  g.initializers = {header("c", kC64, {3}) + pairs};
  EXPECT_EQ(run(model(g), {}).status().code(), Code::kSizeMismatch);
}

}  // namespace
}  // namespace pyc::onnx::test
