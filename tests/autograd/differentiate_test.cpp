// What differentiate promises about graphs: gradients of a worked example, the forward graph kept,
// refusals by name.

#include "autograd/gradient.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "ops/registry.h"
#include "passes/run_text.h"

namespace pyc::autograd {
namespace {

using ir::ValueId;

ir::VerifiedGraph parsed(const std::string& text) {
  auto graph = ir::parse(text, ops::all_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  auto verified = ir::verify_graph(std::move(*graph));
  EXPECT_TRUE(verified.ok()) << verified.status().to_string();
  return *verified;
}

ValueId named(const ir::Graph& graph, std::string_view name) {
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    if (graph.value(v).name == name) return v;
  }
  ADD_FAILURE() << "no value %" << name;
  return 0;
}

Result<ir::VerifiedGraph> gradient(const std::string& text, std::vector<std::string> wanted,
                                   const GradientOptions& options = {}) {
  const ir::VerifiedGraph graph = parsed(text);
  std::vector<ValueId> ids;
  for (const std::string& name : wanted) ids.push_back(named(*graph, name));
  return differentiate(graph, named(*graph, "loss"), ids, ops::all_ops(), options);
}

std::vector<double> values(const std::vector<std::byte>& bytes) {
  std::vector<double> out(bytes.size() / sizeof(double));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(double));
  return out;
}
std::vector<std::byte> bytes(const std::vector<double>& numbers) {
  std::vector<std::byte> out(numbers.size() * sizeof(double));
  std::memcpy(out.data(), numbers.data(), out.size());
  return out;
}

int count(const ir::Graph& graph, std::string_view op) {
  int found = 0;
  for (const ir::Node& node : graph.nodes) found += node.op->name == op ? 1 : 0;
  return found;
}

void expect_refusal(const Result<ir::VerifiedGraph>& result, Code code, const std::string& part) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), code) << result.status().to_string();
  EXPECT_NE(result.status().message().find(part), std::string::npos) << result.status().to_string();
}

constexpr const char* kLine = R"(graph @line(%x: f64[2], %w: f64[2]) -> (%loss) {
  %product = mul(%x, %w) : f64[2]
  %loss = reduce_sum(%product) {axes=[], keepdims=false} : f64[]
}
)";

TEST(Differentiate, PutsTheBackwardNodesBehindTheForwardGraph) {
  const ir::VerifiedGraph graph = parsed(kLine);
  const auto made = gradient(kLine, {"x", "w"});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const ir::Graph& joined = **made;
  ASSERT_GE(joined.nodes.size(), graph->nodes.size());
  for (size_t v = 0; v < graph->values.size(); ++v) {
    EXPECT_EQ(joined.values[v].name, graph->values[v].name);
    EXPECT_EQ(joined.values[v].type, graph->values[v].type);
  }
  for (size_t n = 0; n < graph->nodes.size(); ++n) {
    EXPECT_EQ(joined.nodes[n].op, graph->nodes[n].op);
    EXPECT_EQ(joined.nodes[n].inputs, graph->nodes[n].inputs);
    EXPECT_EQ(joined.nodes[n].outputs, graph->nodes[n].outputs);
  }
  ASSERT_EQ(joined.outputs.size(), 3U);
  EXPECT_EQ(joined.outputs[0], graph->outputs[0]);
  EXPECT_EQ(joined.value(joined.outputs[1]).name, "grad.x");
  EXPECT_EQ(joined.value(joined.outputs[2]).name, "grad.w");
}

TEST(Differentiate, GivesTheGradient) {
  const auto made = gradient(kLine, {"x", "w"});
  ASSERT_TRUE(made.ok());
  const auto run = passes::run_graph(**made, {}, {bytes({2.0, 3.0}), bytes({5.0, 7.0})});
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(run.outputs[0].size() / sizeof(double), 1U);
  const auto part = [&](size_t i) {
    std::vector<double> v = values(run.outputs[i]);
    return v;
  };
  EXPECT_EQ(part(0)[0], 31.0);
  EXPECT_EQ(part(1), (std::vector<double>{5.0, 7.0}));
  EXPECT_EQ(part(2), (std::vector<double>{2.0, 3.0}));
}

TEST(Differentiate, LeavesOutWhatNobodyAskedFor) {
  const auto both = gradient(kLine, {"x", "w"});
  const auto one = gradient(kLine, {"x"});
  ASSERT_TRUE(both.ok() && one.ok());
  EXPECT_LT((*one)->nodes.size(), (*both)->nodes.size());
}

// A value read twice gets the sum, and a value in the middle can be asked for.
TEST(Differentiate, AddsWhatAllReadersSend) {
  const std::string text = R"(graph @twice(%x: f64[1]) -> (%loss) {
  %square = mul(%x, %x) : f64[1]
  %cube = mul(%square, %x) : f64[1]
  %loss = reduce_sum(%cube) {axes=[], keepdims=false} : f64[]
}
)";
  const auto made = gradient(text, {"x", "square"});
  ASSERT_TRUE(made.ok());
  const auto run = passes::run_graph(**made, {}, {bytes({3.0})});
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(values(run.outputs[1])[0], 27.0);
  EXPECT_EQ(values(run.outputs[2])[0], 3.0);
}

// What the steps of a recurrence send to their weights is one product over the rows of all.
TEST(Differentiate, JoinsThinProductsOfOneWeight) {
  const std::string text = R"(graph @steps(%x: f64[2,8], %w: f64[8,8]) -> (%loss) {
  %a = matmul(%x, %w) : f64[2,8]
  %b = matmul(%a, %w) : f64[2,8]
  %c = matmul(%b, %w) : f64[2,8]
  %loss = reduce_sum(%c) {axes=[], keepdims=false} : f64[]
}
)";
  const auto made = gradient(text, {"w"});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(count(**made, "matmul"), 3 + 2 + 1);  // forward, back through w, and the joined one
  std::vector<double> x(16);
  std::vector<double> w(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 5) - 2.0;
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<double>(i * 7 % 11) / 8.0 - 0.5;
  const auto run = passes::run_graph(**made, {}, {bytes(x), bytes(w)});
  ASSERT_EQ(run.error, "");
  const std::vector<double> found = values(run.outputs[1]);
  const auto loss_with = [&](size_t at, double by) {
    std::vector<double> moved = w;
    moved[at] += by;
    return values(passes::run_graph(**made, {}, {bytes(x), bytes(moved)}).outputs[0])[0];
  };
  for (const size_t at : {0, 9, 38, 63}) {
    EXPECT_NEAR(found[at], (loss_with(at, 1e-4) - loss_with(at, -1e-4)) / 2e-4, 1e-5) << at;
  }
}

// Slices that do not overlap send pieces that lie side by side, zeros where none was taken; a −0
// becomes +0, as it would if zeros were added to it.
TEST(Differentiate, PutsWhatSlicesSendSideBySide) {
  const std::string text = R"(graph @pieces(%x: f64[6], %w: f64[5]) -> (%loss) {
  %a = slice(%x) {starts=[0], ends=[2]} : f64[2]
  %b = slice(%x) {starts=[4], ends=[6]} : f64[2]
  %c = slice(%x) {starts=[2], ends=[3]} : f64[1]
  %all = concat(%a, %b, %c) {axis=0} : f64[5]
  %product = mul(%all, %w) : f64[5]
  %loss = reduce_sum(%product) {axes=[], keepdims=false} : f64[]
}
)";
  const auto made = gradient(text, {"x"});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(count(**made, "pad"), 0);
  EXPECT_EQ(count(**made, "concat"), 2);
  const auto run = passes::run_graph(
      **made, {}, {bytes(std::vector<double>(6, 1.0)), bytes({1, -0.0, 3, 4, 5})});
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(bytes(values(run.outputs[1])), bytes({1, 0.0, 5, 0.0, 3, 4}));
}

// Pieces of pieces, as the gates of a recurrence's steps are: +0 is added to the inner ones alone.
TEST(Differentiate, AddsZeroToPiecesOfPiecesOnce) {
  const std::string text = R"(graph @pieces(%x: f64[2,2], %w: f64[1,1]) -> (%loss) {
  %a = slice(%x) {starts=[0], ends=[1], axes=[0]} : f64[1,2]
  %b = slice(%x) {starts=[1], ends=[2], axes=[0]} : f64[1,2]
  %a0 = slice(%a) {starts=[0], ends=[1], axes=[1]} : f64[1,1]
  %a1 = slice(%a) {starts=[1], ends=[2], axes=[1]} : f64[1,1]
  %b0 = slice(%b) {starts=[0], ends=[1], axes=[1]} : f64[1,1]
  %b1 = slice(%b) {starts=[1], ends=[2], axes=[1]} : f64[1,1]
  %left = mul(%a0, %b1) : f64[1,1]
  %right = mul(%a1, %b0) : f64[1,1]
  %sum = sub(%left, %right) : f64[1,1]
  %scaled = mul(%sum, %w) : f64[1,1]
  %loss = reduce_sum(%scaled) {axes=[], keepdims=false} : f64[]
}
)";
  const auto made = gradient(text, {"x"});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(count(**made, "concat"), 3);
  EXPECT_EQ(count(**made, "add"), 2);
  const auto run = passes::run_graph(**made, {}, {bytes({2, 3, 5, -0.0}), bytes({1})});
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(bytes(values(run.outputs[1])), bytes({0.0, -5, -3, 2}));
}

// The gradient of a weight that is read turned is one product, not a product and its transpose.
TEST(Differentiate, MakesTheGradientOfATurnedWeightAsItLies) {
  const std::string text = R"(graph @turned(%x: f64[2,3], %w: f64[2,3], %s: f64[2,2]) -> (%loss) {
  %wt = transpose(%w) {perm=[1, 0]} : f64[3,2]
  %y = matmul(%x, %wt) : f64[2,2]
  %scaled = mul(%y, %s) : f64[2,2]
  %loss = reduce_sum(%scaled) {axes=[], keepdims=false} : f64[]
}
)";
  const auto made = gradient(text, {"w"});
  ASSERT_TRUE(made.ok());
  const ir::Graph& graph = **made;
  EXPECT_EQ(graph.nodes[graph.value(graph.outputs[1]).producer].op->name, "matmul");
  EXPECT_EQ(count(graph, "matmul"), 2);
  const auto run = passes::run_graph(
      graph, {},
      {bytes({1, 2, 3, 4, 5, 6}), bytes(std::vector<double>(6, 1.0)), bytes({1, 10, 100, 1000})});
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(values(run.outputs[1]), (std::vector<double>{401, 502, 603, 4010, 5020, 6030}));
}

TEST(Differentiate, AddsWhatOverlappingSlicesSend) {
  const std::string text = R"(graph @pieces(%x: f64[3]) -> (%loss) {
  %a = slice(%x) {starts=[0], ends=[2]} : f64[2]
  %b = slice(%x) {starts=[1], ends=[3]} : f64[2]
  %product = mul(%a, %b) : f64[2]
  %loss = reduce_sum(%product) {axes=[], keepdims=false} : f64[]
}
)";
  const auto made = gradient(text, {"x"});
  ASSERT_TRUE(made.ok());
  const auto run = passes::run_graph(**made, {}, {bytes({2, 3, 5})});
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(values(run.outputs[1]), (std::vector<double>{3, 7, 3}));
}

TEST(Differentiate, CanBeAppliedTwice) {
  const std::string text = R"(graph @power(%x: f64[]) -> (%loss) {
  %square = mul(%x, %x) : f64[]
  %loss = mul(%square, %square) : f64[]
}
)";
  auto first = gradient(text, {"x"});
  ASSERT_TRUE(first.ok());
  const ValueId x = named(**first, "x");
  auto second = differentiate(*first, (*first)->outputs[1], std::array{x}, ops::all_ops());
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  const auto run = passes::run_graph(**second, {}, {bytes({2.0})});
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(values(run.outputs[0])[0], 16.0);
  EXPECT_EQ(values(run.outputs[1])[0], 32.0);
  EXPECT_EQ(values(run.outputs[2])[0], 48.0);
}

TEST(Differentiate, NamesTheOpWithoutADerivative) {
  const auto made = gradient(R"(graph @steps(%x: f64[2]) -> (%loss) {
  %low = floor(%x) : f64[2]
  %loss = reduce_sum(%low) {axes=[], keepdims=false} : f64[]
}
)",
                             {"x"});
  expect_refusal(made, Code::kUnsupported,
                 "op 'floor' of %low from 'line 2' has no gradient: a step");
}

// What the loss reaches only through an integer has no gradient to give.
TEST(Differentiate, StopsAtIntegersAndBools) {
  const std::string text = R"(graph @mask(%x: f64[2], %y: f64[2]) -> (%loss) {
  %above = less(%y, %x) : bool[2]
  %chosen = where(%above, %x, %y) : f64[2]
  %loss = reduce_sum(%chosen) {axes=[], keepdims=false} : f64[]
}
)";
  const auto made = gradient(text, {"x", "y"});
  ASSERT_TRUE(made.ok());
  const auto run = passes::run_graph(**made, {}, {bytes({1.0, 4.0}), bytes({3.0, 2.0})});
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(values(run.outputs[1]), (std::vector<double>{0.0, 1.0}));
  EXPECT_EQ(values(run.outputs[2]), (std::vector<double>{1.0, 0.0}));
}

TEST(Differentiate, RefusesInputsAnOpHasNoDerivativeIn) {
  const auto made = gradient(R"(graph @hot(%at: f64[2], %v: f64[2]) -> (%loss) {
  %hot = one_hot(%at, %v) {axis=-1, depth=3} : f64[2,3]
  %loss = reduce_sum(%hot) {axes=[], keepdims=false} : f64[]
}
)",
                             {"at"});
  expect_refusal(made, Code::kUnsupported, "has no gradient: it has none in input 0");
}

TEST(Differentiate, RefusesALossThatIsNoScalar) {
  expect_refusal(gradient("graph @v(%loss: f64[2]) -> (%loss) {\n}\n", {"loss"}),
                 Code::kInvalidArgument, "the loss %loss must be a float of one element");
  expect_refusal(gradient("graph @v(%loss: i64[]) -> (%loss) {\n}\n", {"loss"}),
                 Code::kInvalidArgument, "the loss %loss must be a float of one element");
}

TEST(Differentiate, RefusesWantedValuesThatHaveNone) {
  const std::string text = R"(graph @two(%x: f64[], %z: f64[], %n: i64[]) -> (%loss) {
  %loss = exp(%x) : f64[]
}
)";
  expect_refusal(gradient(text, {"z"}), Code::kInvalidArgument,
                 "the loss %loss does not depend on %z");
  expect_refusal(gradient(text, {"n"}), Code::kInvalidArgument, "%n must be a float");
  const auto allowed = gradient(text, {"z"}, {.allow_unused = true});
  ASSERT_TRUE(allowed.ok());
  const std::vector<std::byte> whole(8);
  const auto run = passes::run_graph(**allowed, {}, {bytes({1.0}), bytes({1.0}), whole});
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(values(run.outputs[1])[0], 0.0);
}

TEST(Differentiate, RefusesIdsThatAreNone) {
  const ir::VerifiedGraph graph = parsed(kLine);
  const ValueId none = 1000;
  const ValueId x = named(*graph, "x");
  expect_refusal(differentiate(graph, none, std::array{x}, ops::all_ops()), Code::kInvalidArgument,
                 "the loss must be a value id under");
  expect_refusal(differentiate(graph, named(*graph, "loss"), std::array{none}, ops::all_ops()),
                 Code::kInvalidArgument, "expected a value id under");
}

}  // namespace
}  // namespace pyc::autograd
