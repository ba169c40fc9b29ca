#include "onnx/run_model.h"

namespace pyc::onnx::test {
namespace {

const DynValue kSmallInput = f32({2, 3}, {1, 0, -1, 2, -3, 0.5F});

TEST(OnnxGood, SmallModelRuns) {
  const auto out = run(model(small_graph()), {kSmallInput});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  // x·w = [[-4,-4],[-4.5,-5]]; with b: [[-5,-3],[-5.5,-4]].
  EXPECT_EQ(numbers_of(out), (std::vector<double>{0, 0, 0, 0}));
  const auto positive = run(model(small_graph()), {f32({2, 3}, {1, 1, 1, 0, 0, 2})});
  EXPECT_EQ(numbers_of(positive), (std::vector<double>{8, 13, 9, 13}));
}

TEST(OnnxGood, DynamicBatchCompilesOneProgramPerShape) {
  Graph g = small_graph();
  g.inputs = {value("x", tensor_type(kF32, {named("N"), fixed(3)}))};
  g.outputs = {value("y", tensor_type(kF32, {named("N"), fixed(2)}))};
  const auto made = session(model(g));
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const std::vector<DynValue> one{f32({1, 3}, {1, 1, 1})};
  const std::vector<DynValue> two{f32({2, 3}, {1, 1, 1, 0, 0, 2})};
  EXPECT_EQ(numbers_of((*made)->run(one)), (std::vector<double>{8, 13}));
  EXPECT_EQ(numbers_of((*made)->run(two)), (std::vector<double>{8, 13, 9, 13}));
  EXPECT_EQ(numbers_of((*made)->run(one)), (std::vector<double>{8, 13}));
  EXPECT_EQ((*made)->stats().segments_compiled, 2);
  const std::vector<DynValue> wrong{f32({3, 1}, {1, 1, 1})};
  expect_refused((*made)->run(wrong), Code::kShapeMismatch, "'x'");
}

TEST(OnnxGood, AShapeThatIsComputedMakesTwoStages) {
  // The shape comes from x itself: Cast(x[0:2]) = [3, 2].
  Graph g{.inputs = {value("x", kF32, {6})},
          .outputs = {unshaped("y", kF32)},
          .initializers = {ints("from", {0}), ints("to", {2})},
          .nodes = {node("Abs", {"x"}, {"a"}, {}, "abs"),
                    node("Slice", {"a", "from", "to"}, {"head"}, {}, "head"),
                    node("Cast", {"head"}, {"shape"}, {attr_int("to", kI64)}, "cast"),
                    node("Reshape", {"a", "shape"}, {"y"}, {}, "reshape")}};
  const auto made = session(model(g));
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const std::vector<DynValue> x{f32({6}, {-3, 2, 1, -1, 5, 6})};
  const auto out = (*made)->run(x);
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_EQ((*out)[0].shape, (Ints{3, 2}));
  EXPECT_EQ(numbers_of(out), (std::vector<double>{3, 2, 1, 1, 5, 6}));
  EXPECT_GE((*made)->stats().segments_run, 1);
  const auto log = (*made)->decisions();
  const bool broke = std::any_of(log.begin(), log.end(), [](const Decision& d) {
    return d.what == "graph_break" && d.chosen.find("reshape") != std::string::npos;
  });
  EXPECT_TRUE(broke);
}

Bytes branch(const std::string& op) {
  return graph({.outputs = {unshaped("r", kF32)}, .nodes = {node(op, {"a", "x"}, {"r"})}});
}

TEST(OnnxGood, BranchesSeeTheValuesAroundThem) {
  Graph g{.inputs = {value("c", kBool, {}), value("x", kF32, {2, 3})},
          .outputs = {unshaped("y", kF32)},
          .nodes = {node("Neg", {"x"}, {"a"}), node("If", {"c"}, {"y"},
                                                    {attr_graph("then_branch", branch("Add")),
                                                     attr_graph("else_branch", branch("Sub"))})}};
  const auto made = session(model(g));
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const DynValue x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto yes = (*made)->run(std::vector<DynValue>{DynValue::of_bool(true), x});
  ASSERT_TRUE(yes.ok()) << yes.status().to_string();
  EXPECT_EQ(numbers_of(yes), (std::vector<double>(6, 0.0)));
  const auto no = (*made)->run(std::vector<DynValue>{DynValue::of_bool(false), x});
  EXPECT_EQ(numbers_of(no), (std::vector<double>{-2, -4, -6, -8, -10, -12}));
}

Bytes loop_model(int64_t trips) {
  const Bytes body =
      graph({.inputs = {value("i", kI64, {}), value("go", kBool, {}), value("s", kF32, {2, 3})},
             .outputs = {unshaped("go", kBool), unshaped("t", kF32)},
             .nodes = {node("Add", {"s", "x"}, {"t"})}});
  return model({.inputs = {value("x", kF32, {2, 3})},
                .outputs = {unshaped("y", kF32)},
                .initializers = {raw_tensor("n", kI64, {}, raw_of(Ints{trips}))},
                .nodes = {node("Loop", {"n", "", "x"}, {"y"}, {attr_graph("body", body)})}});
}

TEST(OnnxGood, LoopBodiesSeeTheValuesAroundThem) {
  for (const int64_t trips : {3, 100}) {
    const auto out = run(loop_model(trips), {f32({2, 3}, {1, 0, 0, 0, 0, -1})});
    ASSERT_TRUE(out.ok()) << out.status().to_string();
    const auto n = static_cast<double>(trips + 1);
    EXPECT_EQ(numbers_of(out), (std::vector<double>{n, 0, 0, 0, 0, -n}));
  }
}

// A function's nodes have one name in every call, and yet draw numbers of their own.
TEST(OnnxGood, CallsOfAFunctionDrawDifferentNumbers) {
  const Bytes noise = function("Noise", {"a"}, {"b"}, {node("RandomUniformLike", {"a"}, {"b"})});
  const Graph g{
      .inputs = {value("x", kF32, {4})},
      .outputs = {value("y", kF32, {4})},
      .nodes = {node("Noise", {"x"}, {"p"}, {}, "one", "f"),
                node("Noise", {"x"}, {"q"}, {}, "two", "f"), node("Sub", {"p", "q"}, {"y"})}};
  const auto out = run(model(g, 18, with_functions({noise})), {f32({4}, {0, 0, 0, 0})});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  for (const double difference : numbers_of(out)) EXPECT_NE(difference, 0.0);
}

TEST(OnnxGood, FunctionsAreWrittenOut) {
  // Leak(x; alpha) = LeakyRelu(x, alpha); Twice(x) = Leak(Leak(x, 0.5), 0.5)
  const Bytes leak =
      function("Leak", {"a"}, {"b"},
               {node("LeakyRelu", {"a"}, {"b"}, {attr_ref("alpha", "slope", 1)})}, {"slope"});
  const std::vector<Bytes> half{attr_float("slope", 0.5F)};
  const Bytes twice = function(
      "Twice", {"a"}, {"c"},
      {node("Leak", {"a"}, {"b"}, half, "one", "f"), node("Leak", {"b"}, {"c"}, half, "two", "f")});
  const Graph g{.inputs = {value("x", kF32, {2})},
                .outputs = {value("y", kF32, {2})},
                .nodes = {node("Twice", {"x"}, {"y"}, {}, "call", "f")}};
  const auto out = run(model(g, 18, with_functions({leak, twice})), {f32({2}, {4, -4})});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_EQ(numbers_of(out), (std::vector<double>{4, -1}));
}

TEST(OnnxGood, InitializersMayBeListedAsInputs) {
  Graph g = small_graph();
  g.inputs.push_back(value("w", kF32, {3, 2}));
  const auto out = run(model(g), {f32({2, 3}, {1, 1, 1, 0, 0, 2})});
  EXPECT_EQ(numbers_of(out), (std::vector<double>{8, 13, 9, 13}));
}

}  // namespace
}  // namespace pyc::onnx::test
