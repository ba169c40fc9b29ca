// The Gradient operator: against formulas, and through regions against differences.

#include <cmath>

#include "onnx/run_model.h"

namespace pyc::onnx::test {
namespace {

constexpr const char* kTraining = "ai.onnx.preview.training";

Bytes attr_names(const std::string& name, const Names& all) {
  return text(1, name) + texts(9, all) + number(20, 8);
}

struct Asked {
  Names xs;
  std::string y;
  Names zs = {};
  Names at = {};  // the values to differentiate at, where they are not xs and zs themselves
};

Bytes gradient(const Asked& asked, const Names& out) {
  Names at = asked.at;
  if (at.empty()) {
    at = asked.xs;
    at.insert(at.end(), asked.zs.begin(), asked.zs.end());
  }
  std::vector<Bytes> attrs{attr_names("xs", asked.xs), attr_string("y", asked.y)};
  if (!asked.zs.empty()) attrs.push_back(attr_names("zs", asked.zs));
  return node("Gradient", at, out, attrs, "slope", kTraining);
}

Bytes trained(const Graph& g) { return model(g, 18, text(8, opset(1, kTraining))); }

Graph of_scalars(const Names& inputs, const std::vector<Bytes>& nodes, const Names& outputs) {
  Graph g{.nodes = nodes};
  for (const std::string& name : inputs) g.inputs.push_back(value(name, kF32, {}));
  for (const std::string& name : outputs) g.outputs.push_back(unshaped(name, kF32));
  return g;
}

void expect_outputs(const Graph& g, const std::vector<DynValue>& inputs,
                    const std::vector<std::vector<double>>& expected) {
  const auto out = run(trained(g), inputs);
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(numbers_of(out, i), expected[i]) << i;
}

// d = (a + b)·a
const Bytes kAdd = node("Add", {"a", "b"}, {"c"});
const Bytes kMul = node("Mul", {"c", "a"}, {"d"});

TEST(OnnxGradient, OfASumAndAProduct) {
  const Graph g =
      of_scalars({"a", "b"}, {kAdd, kMul, gradient({.xs = {"a", "b"}, .y = "d"}, {"da", "db"})},
                 {"d", "da", "db"});
  expect_outputs(g, {f32({}, {1}), f32({}, {2})}, {{3}, {4}, {1}});
}

TEST(OnnxGradient, LeavesOutWhatIsNotAskedForAndStandsAnywhere) {
  const Graph g = of_scalars(
      {"a", "b"}, {gradient({.xs = {"a", "b"}, .y = "d"}, {"", "db"}), kAdd, kMul}, {"db"});
  expect_outputs(g, {f32({}, {5}), f32({}, {2})}, {{5}});
}

TEST(OnnxGradient, InAValueOnTheWay) {
  const Graph g = of_scalars(
      {"a", "b"}, {kAdd, kMul, gradient({.xs = {"c"}, .y = "d", .zs = {"a"}}, {"dc"})}, {"dc"});
  expect_outputs(g, {f32({}, {3}), f32({}, {2})}, {{3}});
}

// At a = 10 and b = 20, whatever the model's are; what else reads the point is no function of x.
TEST(OnnxGradient, AtOtherValues) {
  const Graph g = of_scalars(
      {"a", "b", "p", "q"},
      {kAdd, kMul, gradient({.xs = {"a", "b"}, .y = "d", .at = {"p", "q"}}, {"da", "db"}),
       gradient({.xs = {"c"}, .y = "d", .at = {"a"}}, {"dc"})},
      {"da", "db", "dc"});
  expect_outputs(g, {f32({}, {1}), f32({}, {2}), f32({}, {10}), f32({}, {20})}, {{40}, {10}, {1}});
}

TEST(OnnxGradient, Twice) {
  const Graph g = of_scalars({"a"},
                             {node("Mul", {"a", "a"}, {"s"}), node("Mul", {"s", "a"}, {"cube"}),
                              gradient({.xs = {"a"}, .y = "cube"}, {"first"}),
                              gradient({.xs = {"a"}, .y = "first"}, {"second"}),
                              gradient({.xs = {"a"}, .y = "second"}, {"third"})},
                             {"first", "second", "third"});
  expect_outputs(g, {f32({}, {2})}, {{12}, {12}, {6}});
}

TEST(OnnxGradient, InAnInitializerAndOfTheSumOfSeveralElements) {
  Graph g = small_graph();
  g.nodes.push_back(gradient({.xs = {"w", "b"}, .y = "s", .zs = {"x"}}, {"dw", "db"}));
  g.outputs = {unshaped("dw", kF32), unshaped("db", kF32)};
  expect_outputs(g, {f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {{5, 5, 7, 7, 9, 9}, {2, 2}});
}

TEST(OnnxGradient, FeedsAnOptimizer) {
  Graph g =
      of_scalars({"r", "w"},
                 {node("Mul", {"w", "w"}, {"loss"}), gradient({.xs = {"w"}, .y = "loss"}, {"dw"}),
                  node("Momentum", {"r", "t", "w", "dw", "v"}, {"w2", "v2"},
                       {attr_float("alpha", 0.5F), attr_float("beta", 1.0F),
                        attr_string("mode", "standard"), attr_float("norm_coefficient", 0)},
                       "update", kTraining)},
                 {"w2", "v2"});
  g.initializers = {raw_tensor("t", kI64, {}, raw_of(Ints{1})), floats("v", {}, {4})};
  expect_outputs(g, {f32({}, {0.25F}), f32({}, {3})}, {{1}, {8}});
}

// The slope of the model's `y` along a direction, by central differences.
void expect_slope(const Graph& forward, const Names& xs, const std::vector<DynValue>& at) {
  Graph g = forward;
  Names slopes;
  for (const std::string& x : xs) slopes.push_back("d" + x);
  g.nodes.push_back(gradient({.xs = xs, .y = "y"}, slopes));
  g.outputs = {unshaped("y", kF32)};
  for (const std::string& name : slopes) g.outputs.push_back(unshaped(name, kF32));
  const auto made = session(trained(g));
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const auto there = (*made)->run(at);
  ASSERT_TRUE(there.ok()) << there.status().to_string();
  const size_t first = at.size() - xs.size();
  for (size_t i = 0; i < xs.size(); ++i) {
    const std::vector<double> slope = numbers_of(there, 1 + i);
    const std::vector<double> point = to_doubles(at[first + i]);
    ASSERT_EQ(slope.size(), point.size());
    for (size_t k = 0; k < point.size(); ++k) {
      constexpr double kStep = 1.0 / 64;
      double ends[2];
      for (const int side : {0, 1}) {
        std::vector<float> moved(point.begin(), point.end());
        moved[k] = static_cast<float>(point[k] + (side == 0 ? -kStep : kStep));
        std::vector<DynValue> inputs = at;
        inputs[first + i] = f32(at[first + i].shape, moved);
        const auto out = (*made)->run(inputs);
        ASSERT_TRUE(out.ok()) << out.status().to_string();
        ends[side] = numbers_of(out)[0];
      }
      const double expected = (ends[1] - ends[0]) / (2 * kStep);
      EXPECT_NEAR(slope[k], expected, 2e-3 * (1 + std::abs(expected))) << xs[i] << " " << k;
    }
  }
}

Bytes branch(const std::string& op) {
  return graph({.outputs = {unshaped("r", kF32)},
                .nodes = {node(op, {"x"}, {"t"}), node("Mul", {"t", "w"}, {"r"})}});
}

TEST(OnnxGradient, ThroughTheBranchThatIsTaken) {
  const Graph g{.inputs = {value("go", kBool, {}), value("x", kF32, {3}), value("w", kF32, {3})},
                .initializers = {ints("all", {0})},
                .nodes = {node("If", {"go"}, {"z"},
                               {attr_graph("then_branch", branch("Tanh")),
                                attr_graph("else_branch", branch("Exp"))}),
                          node("ReduceSum", {"z", "all"}, {"y"}, {attr_int("keepdims", 0)})}};
  for (const bool taken : {true, false}) {
    expect_slope(g, {"x", "w"},
                 {DynValue::of_bool(taken), f32({3}, {0.5F, -1, 0.25F}), f32({3}, {2, 1, -0.5F})});
  }
}

// x ← tanh(x·w), five times; each x on the way is an output, too.
TEST(OnnxGradient, ThroughALoopWithItsValuesOnTheWay) {
  const Bytes body =
      graph({.inputs = {value("i", kI64, {}), value("go", kBool, {}), value("s", kF32, {3})},
             .outputs = {unshaped("go", kBool), unshaped("t", kF32), unshaped("each", kF32)},
             .nodes = {node("Mul", {"s", "w"}, {"p"}), node("Tanh", {"p"}, {"t"}),
                       node("Mul", {"t", "t"}, {"each"})}});
  const Graph g{.inputs = {value("x", kF32, {3}), value("w", kF32, {3})},
                .initializers = {raw_tensor("n", kI64, {}, raw_of(Ints{5})), ints("all", {0}),
                                 ints("both", {0, 1})},
                .nodes = {node("Loop", {"n", "", "x"}, {"z", "kept"}, {attr_graph("body", body)}),
                          node("ReduceSum", {"z", "all"}, {"a"}, {attr_int("keepdims", 0)}),
                          node("ReduceSum", {"kept", "both"}, {"b"}, {attr_int("keepdims", 0)}),
                          node("Add", {"a", "b"}, {"y"})}};
  expect_slope(g, {"x", "w"}, {f32({3}, {0.5F, -1, 0.25F}), f32({3}, {1.5F, 1, -0.5F})});
}

// h ← tanh(h·w + row), over the rows from the last to the first.
TEST(OnnxGradient, ThroughAScan) {
  const Bytes body =
      graph({.inputs = {unshaped("h", kF32), unshaped("row", kF32)},
             .outputs = {unshaped("next", kF32), unshaped("each", kF32)},
             .nodes = {node("Mul", {"h", "w"}, {"p"}), node("Add", {"p", "row"}, {"q"}),
                       node("Tanh", {"q"}, {"next"}), node("Exp", {"next"}, {"each"})}});
  const Graph g{.inputs = {value("x", kF32, {4, 2}), value("w", kF32, {2}), value("h0", kF32, {2})},
                .initializers = {ints("both", {0, 1}), ints("all", {0})},
                .nodes = {node("Scan", {"h0", "x"}, {"last", "every"},
                               {attr_graph("body", body), attr_int("num_scan_inputs", 1),
                                attr_ints("scan_input_directions", {1})}),
                          node("ReduceSum", {"every", "both"}, {"a"}, {attr_int("keepdims", 0)}),
                          node("ReduceSum", {"last", "all"}, {"b"}, {attr_int("keepdims", 0)}),
                          node("Mul", {"a", "b"}, {"y"})}};
  expect_slope(g, {"x", "w", "h0"},
               {f32({4, 2}, {0.5F, -1, 0.25F, 1, -0.75F, 0.5F, 0.25F, 0.125F}),
                f32({2}, {1.5F, -0.5F}), f32({2}, {0.25F, 0.5F})});
}

TEST(OnnxGradient, RefusesWhatHasNone) {
  const auto refused = [](const std::vector<Bytes>& nodes, Code code, const std::string& part) {
    const Graph g = of_scalars({"a", "b"}, nodes, {"da"});
    expect_refused(run(trained(g), {f32({}, {1}), f32({}, {2})}), code, part);
  };
  refused({kAdd, gradient({.xs = {"a"}, .y = "b"}, {"da"})}, Code::kInvalidArgument,
          "does not depend on %at.a");
  refused({kAdd, gradient({.xs = {"nobody"}, .y = "c", .at = {"a"}}, {"da"})}, Code::kVerifyFailed,
          "reads 'nobody'");
  refused({kAdd, gradient({.xs = {"a"}, .y = "nobody"}, {"da"})}, Code::kVerifyFailed,
          "reads 'nobody'");
  refused({kAdd, gradient({.xs = {"a", "b"}, .y = "c", .at = {"a"}}, {"da"})}, Code::kVerifyFailed,
          "an input for each of the 2 tensors");
  refused({kAdd, node("Gradient", {"a"}, {"da"}, {attr_names("xs", {"a"})}, "slope", kTraining)},
          Code::kVerifyFailed, "'xs' and 'y' are needed");
  refused({node("Bernoulli", {"a"}, {"c"}), gradient({.xs = {"a"}, .y = "c"}, {"da"})},
          Code::kUnsupported, "op 'bernoulli'");
}

// Each holds all before it, and what it is written out to multiplies.
TEST(OnnxGradient, OfGradientsIsBounded) {
  const auto chain = [](int length) {
    std::vector<Bytes> nodes{node("Tanh", {"a"}, {"g0"})};
    for (int i = 0; i < length; ++i) {
      const std::string y = "g" + std::to_string(i);
      nodes.push_back(gradient({.xs = {"a"}, .y = y}, {"g" + std::to_string(i + 1)}));
    }
    return trained(of_scalars({"a"}, nodes, {"g" + std::to_string(length)}));
  };
  expect_read_refused(chain(70), Code::kVerifyFailed, "nest too deep");
  expect_refused(run(chain(40), {f32({}, {1})}), Code::kBudgetExceeded,
                 "too many to differentiate");
  const auto third = run(chain(3), {f32({}, {0})});
  EXPECT_EQ(numbers_of(third), (std::vector<double>{-2}));
}

}  // namespace
}  // namespace pyc::onnx::test
