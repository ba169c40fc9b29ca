// Operators that no op of PyC's own is written as, and so no case of an op reaches: small models
// with results worked out by hand.

#include "onnx/run_model.h"

namespace pyc::onnx::test {
namespace {

using Doubles = std::vector<double>;

constexpr int64_t kU8 = 2;
constexpr int64_t kString = 8;
const DynValue kX = f32({2, 3}, {1, 0, -1, 2, -3, 0.5F});

Bytes u8(const std::string& name, const Ints& dims, const std::vector<uint8_t>& values) {
  return raw_tensor(name, kU8, dims, raw_of(values));
}
Bytes strings(const std::string& name, const Ints& dims, const Names& values) {
  return header(name, kString, dims) + texts(6, values);
}

// The last node's y; x is f32[2,3].
Bytes nodes_on_x(std::vector<Bytes> nodes, std::vector<Bytes> initializers, int64_t type = kF32,
                 int64_t version = 20) {
  return model({.inputs = {value("x", kF32, {2, 3})},
                .outputs = {unshaped("y", type)},
                .initializers = std::move(initializers),
                .nodes = std::move(nodes)},
               version);
}

void expect_numbers(const Bytes& bytes, const Doubles& expected) {
  const auto out = run(bytes, {kX});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_EQ(numbers_of(out), expected);
}

TEST(OnnxOps, SumsAndCasts) {
  expect_numbers(nodes_on_x({node("Sum", {"x", "x", "x"}, {"y"})}, {}), {3, 0, -3, 6, -9, 1.5});
  expect_numbers(nodes_on_x({node("Mean", {"x", "z"}, {"y"})}, {floats("z", {1}, {0})}),
                 {0.5, 0, -0.5, 1, -1.5, 0.25});
  expect_numbers(nodes_on_x({node("CastLike", {"x", "i"}, {"y"})}, {ints("i", {5})}, kI64),
                 {1, 0, -1, 2, -3, 0});
  expect_numbers(nodes_on_x({node("Dropout", {"x"}, {"y"})}, {}), {1, 0, -1, 2, -3, 0.5});
}

TEST(OnnxOps, UniqueAndScatter) {
  expect_numbers(nodes_on_x({node("Unique", {"x"}, {"y"})}, {}), {-3, -1, 0, 0.5, 1, 2});
  const Bytes at = raw_tensor("at", kI64, {1, 3}, raw_of(Ints{1, 0, 1}));
  const Bytes to = floats("to", {1, 3}, {9, 8, 7});
  expect_numbers(nodes_on_x({node("Scatter", {"x", "at", "to"}, {"y"})}, {at, to}, kF32, 10),
                 {1, 8, -1, 9, -3, 7});
}

TEST(OnnxOps, ShapesAndPlaces) {
  expect_numbers(nodes_on_x({node("Shape", {"x"}, {"y"})}, {}, kI64), {2, 3});
  expect_numbers(nodes_on_x({node("NonZero", {"x"}, {"y"})}, {}, kI64),
                 {0, 0, 1, 1, 1, 0, 2, 0, 1, 2});
  expect_numbers(nodes_on_x({node("CenterCropPad", {"x", "to"}, {"y"})}, {ints("to", {4, 1})}),
                 {0, 0, -3, 0});
  expect_numbers(nodes_on_x({node("Upsample", {"x", "scales"}, {"y"})},
                            {floats("scales", {2}, {1, 2})}, kF32, 9),
                 {1, 1, 0, 0, -1, -1, 2, 2, -3, -3, 0.5, 0.5});
}

TEST(OnnxOps, StringConcat) {
  const auto out =
      run(nodes_on_x({node("StringConcat", {"a", "b"}, {"y"})},
                     {strings("a", {2}, {"to", ""}), strings("b", {1}, {"day"})}, kString),
          {kX});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_EQ(*(*out)[0].strings, (std::vector<std::string>{"today", "day"}));
}

TEST(OnnxOps, If) {
  const auto branch = [](const std::string& op) {
    return graph({.outputs = {unshaped("r", kF32)}, .nodes = {node(op, {"x"}, {"r"})}});
  };
  const Bytes bytes = model({.inputs = {value("c", kBool, {}), value("x", kF32, {2, 3})},
                             .outputs = {unshaped("y", kF32)},
                             .nodes = {node("If", {"c"}, {"y"},
                                            {attr_graph("then_branch", branch("Neg")),
                                             attr_graph("else_branch", branch("Abs"))})}});
  EXPECT_EQ(numbers_of(run(bytes, {DynValue::of_bool(true), kX})),
            (Doubles{-1, 0, 1, -2, 3, -0.5}));
  EXPECT_EQ(numbers_of(run(bytes, {DynValue::of_bool(false), kX})), (Doubles{1, 0, 1, 2, 3, 0.5}));
}

TEST(OnnxOps, QuantizedProducts) {
  const std::vector<Bytes> parameters = {floats("one", {}, {1}), u8("zero", {}, {0}),
                                         u8("first", {}, {1}), u8("ten", {}, {10})};
  const Names rest = {"one", "first", "b", "one", "zero", "one", "ten"};
  Names in{"a"};
  in.insert(in.end(), rest.begin(), rest.end());
  std::vector<Bytes> matrices = parameters;
  matrices.push_back(u8("a", {1, 2}, {3, 5}));
  matrices.push_back(u8("b", {2, 1}, {2, 4}));
  expect_numbers(nodes_on_x({node("QLinearMatMul", in, {"y"})}, matrices, kU8), {30});
  std::vector<Bytes> images = parameters;
  images.push_back(u8("a", {1, 1, 1, 2}, {3, 5}));
  images.push_back(u8("b", {1, 1, 1, 1}, {2}));
  expect_numbers(nodes_on_x({node("QLinearConv", in, {"y"})}, images, kU8), {14, 18});
}

TEST(OnnxOps, NonMaxSuppressionKeepsTheBestOfEqualBoxes) {
  expect_numbers(
      nodes_on_x({node("NonMaxSuppression", {"boxes", "scores", "most", "overlap"}, {"y"})},
                 {floats("boxes", {1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 5, 1, 6}),
                  floats("scores", {1, 1, 3}, {0.7F, 0.9F, 0.8F}), ints("most", {3}),
                  floats("overlap", {1}, {0.5F})},
                 kI64),
      {0, 0, 1, 0, 0, 2});
}

// As exporters write it; ONNX Runtime takes it, too.
TEST(OnnxOps, StftOfASignalWithoutALastDim) {
  const auto spectrum = [](const Ints& shape) {
    Graph g{.inputs = {value("x", kF32, shape)},
            .outputs = {unshaped("y", kF32)},
            .initializers = {raw_tensor("step", kI64, {}, raw_of(Ints{2})),
                             raw_tensor("length", kI64, {}, raw_of(Ints{4}))},
            .nodes = {node("STFT", {"x", "step", "", "length"}, {"y"})}};
    return run(model(g), {f32(shape, {1, 2, 3, 4, 5, 6})});
  };
  const auto found = spectrum({1, 6});
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ((*found)[0].shape, (Ints{1, 2, 3, 2}));
  EXPECT_EQ(numbers_of(found), numbers_of(spectrum({1, 6, 1})));
  EXPECT_EQ(numbers_of(found)[0], 10.0);
}

TEST(OnnxOps, OptionalsAndSequences) {
  const Doubles x{1, 0, -1, 2, -3, 0.5};
  expect_numbers(
      nodes_on_x({node("Optional", {"x"}, {"o"}), node("OptionalGetElement", {"o"}, {"y"})}, {}),
      x);
  const Bytes first = raw_tensor("first", kI64, {}, raw_of(Ints{0}));
  expect_numbers(nodes_on_x({node("SequenceEmpty", {}, {"none"}),
                             node("SequenceInsert", {"none", "x"}, {"one"}),
                             node("SequenceAt", {"one", "first"}, {"y"})},
                            {first}),
                 x);
  const Bytes body = graph({.inputs = {unshaped("e", kF32)},
                            .outputs = {unshaped("n", kF32)},
                            .nodes = {node("Abs", {"e"}, {"n"})}});
  expect_numbers(nodes_on_x({node("SequenceConstruct", {"x", "x"}, {"two"}),
                             node("SequenceMap", {"two"}, {"mapped"}, {attr_graph("body", body)}),
                             node("SequenceAt", {"mapped", "first"}, {"y"})},
                            {first}),
                 {1, 0, 1, 2, 3, 0.5});
}

// x is split into its two rows.
TEST(OnnxOps, SequencesOfParts) {
  const Bytes zero = raw_tensor("zero", kI64, {}, raw_of(Ints{0}));
  const Bytes split = node("SplitToSequence", {"x"}, {"rows"}, {attr_int("axis", 0)});
  expect_numbers(nodes_on_x({split, node("SequenceLength", {"rows"}, {"y"})}, {}, kI64), {2});
  expect_numbers(
      nodes_on_x({split, node("ConcatFromSequence", {"rows"}, {"y"}, {attr_int("axis", 1)})}, {}),
      {1, 0, -1, 2, -3, 0.5});
  expect_numbers(nodes_on_x({split, node("SequenceErase", {"rows", "zero"}, {"rest"}),
                             node("ConcatFromSequence", {"rest"}, {"y"}, {attr_int("axis", 0)})},
                            {zero}),
                 {2, -3, 0.5});
}

TEST(OnnxOps, SizeAndCompress) {
  expect_numbers(nodes_on_x({node("Size", {"x"}, {"y"})}, {}, kI64), {6});
  const Bytes kept = raw_tensor("kept", kBool, {3}, raw_of(std::vector<uint8_t>{1, 0, 1}));
  expect_numbers(
      nodes_on_x({node("Compress", {"x", "kept"}, {"y"}, {attr_int("axis", 1)})}, {kept}),
      {1, -1, 2, 0.5});
  expect_numbers(nodes_on_x({node("Compress", {"x", "kept"}, {"y"})}, {kept}), {1, -1});
}

// The sum of the rows so far, and their last one.
TEST(OnnxOps, ScanAddsUpRows) {
  const Bytes body = graph(
      {.inputs = {unshaped("sum", kF32), unshaped("row", kF32)},
       .outputs = {unshaped("next", kF32), unshaped("each", kF32)},
       .nodes = {node("Add", {"sum", "row"}, {"next"}), node("Identity", {"next"}, {"each"})}});
  const auto scan = [&](const Names& outputs) {
    return node("Scan", {"start", "x"}, outputs,
                {attr_graph("body", body), attr_int("num_scan_inputs", 1)});
  };
  const Bytes start = floats("start", {3}, {10, 0, 0});
  expect_numbers(nodes_on_x({scan({"last", "y"})}, {start}), {11, 0, -1, 13, -3, -0.5});
  expect_numbers(nodes_on_x({scan({"y", "each"})}, {start}), {13, -3, -0.5});
}

TEST(OnnxOps, Strings) {
  const Bytes words = strings("words", {2}, {"Ab cd", "e"});
  expect_numbers(nodes_on_x({node("StringSplit", {"words"}, {"parts", "y"})}, {words}, kI64),
                 {2, 1});
  expect_numbers(nodes_on_x({node("StringNormalizer", {"words"}, {"low"},
                                  {attr_string("case_change_action", "LOWER")}),
                             node("Equal", {"low", "expected"}, {"y"})},
                            {words, strings("expected", {2}, {"ab cd", "E"})}, kBool),
                 {1, 0});
  expect_numbers(
      nodes_on_x({node("TfIdfVectorizer", {"tokens"}, {"y"},
                       {attr_string("mode", "TF"), attr_int("min_gram_length", 1),
                        attr_int("max_gram_length", 1), attr_int("max_skip_count", 0),
                        attr_ints("ngram_counts", {0}), attr_ints("ngram_indexes", {0, 1}),
                        attr_ints("pool_int64s", {1, 2})})},
                 {ints("tokens", {1, 2, 1, 7})}),
      {2, 1});
}

TEST(OnnxOps, RegexFullMatch) {
  const auto out =
      run(nodes_on_x({node("RegexFullMatch", {"words"}, {"y"}, {attr_string("pattern", "a.*d")})},
                     {strings("words", {3}, {"abcd", "bcd", "ad"})}, kBool),
          {kX});
  if (!out.ok() && out.status().code() == Code::kUnsupported) GTEST_SKIP() << "built without RE2";
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_EQ(numbers_of(out), (Doubles{1, 0, 1}));
}

// A picture of one row, as plain text.
TEST(OnnxOps, ImageDecoder) {
  const std::string file = "P3\n2 1\n255\n1 2 3 40 50 60\n";
  const std::vector<uint8_t> bytes(file.begin(), file.end());
  const Bytes picture = u8("picture", {static_cast<int64_t>(bytes.size())}, bytes);
  expect_numbers(nodes_on_x({node("ImageDecoder", {"picture"}, {"y"})}, {picture}, kU8),
                 {1, 2, 3, 40, 50, 60});
  expect_numbers(
      nodes_on_x({node("ImageDecoder", {"picture"}, {"y"}, {attr_string("pixel_format", "BGR")})},
                 {picture}, kU8),
      {3, 2, 1, 60, 50, 40});
}

// Draws are the same for one seed, of the wanted shape and in range.
void expect_draws(const std::vector<Bytes>& draw, size_t count, double lowest, double highest,
                  int64_t type) {
  const Bytes bytes = nodes_on_x(draw, {}, type);
  const auto first = run(bytes, {kX});
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  const Doubles drawn = numbers_of(first);
  EXPECT_EQ(drawn.size(), count);
  EXPECT_EQ(drawn, numbers_of(run(bytes, {kX})));
  for (const double v : drawn) {
    EXPECT_GE(v, lowest);
    EXPECT_LE(v, highest);
  }
}

TEST(OnnxOps, RandomDraws) {
  const Bytes seed = attr_float("seed", 3);
  const Bytes shape = attr_ints("shape", {50, 20});
  expect_draws({node("RandomUniform", {}, {"y"}, {seed, shape})}, 1000, 0, 1, kF32);
  expect_draws({node("RandomNormal", {}, {"y"}, {seed, shape})}, 1000, -7, 7, kF32);
  expect_draws({node("RandomUniformLike", {"x"}, {"y"}, {seed})}, 6, 0, 1, kF32);
  expect_draws({node("RandomNormalLike", {"x"}, {"y"}, {seed})}, 6, -7, 7, kF32);
  expect_draws({node("Multinomial", {"x"}, {"y"}, {seed, attr_int("sample_size", 8)})}, 16, 0, 2,
               6);
  expect_draws({node("Sigmoid", {"x"}, {"p"}), node("Bernoulli", {"p"}, {"y"}, {seed})}, 6, 0, 1,
               kF32);
}

}  // namespace
}  // namespace pyc::onnx::test
