// What is reported about models that cannot be compiled whole. PYC_UPDATE_GOLDEN=1 rewrites the
// golden file.

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "model_file/load.h"
#include "onnx/run_model.h"

namespace pyc::onnx::test {
namespace {

struct Case {
  std::string name;
  Bytes bytes;
  std::vector<DynValue> inputs;
};

// Everything here is tensor code.
Case whole() {
  Graph g{
      .inputs = {value("x", kF32, {2, 3})},
      .outputs = {unshaped("y", kF32)},
      .initializers = {floats("scale", {3}, {1, 1, 1}), ints("axes", {1})},
      .nodes = {node("Constant", {}, {"c"}, {attr_tensor("value", floats("", {3}, {1, 2, 3}))}),
                node("Add", {"x", "c"}, {"a"}, {}, "add"), node("Gelu", {"a"}, {"g"}, {}, "gelu"),
                node("LayerNormalization", {"g", "scale"}, {"l"}, {}, "norm"),
                node("ReduceSum", {"l", "axes"}, {"y"}, {}, "sum")}};
  return {"whole", model(g, 20), {f32({2, 3}, {1, 2, 3, 4, 5, 6})}};
}

// Two nodes without a meaning among others.
Case unknown() {
  Graph g{.inputs = {value("x", kF32, {2, 3})},
          .outputs = {unshaped("y", kF32)},
          .nodes = {node("Gelu", {"x"}, {"g"}, {}, "gelu"),
                    node("LayerNormalisation", {"g"}, {"l"}, {}, "norm"),
                    node("Relu", {"l"}, {"r"}, {}, "relu"),
                    node("Frobnicate", {"r"}, {"y"}, {}, "frob")}};
  return {"unknown", model(g, 20), {}};
}

// How many elements there are depends on the input.
Case data_dependent() {
  Graph g{.inputs = {value("x", tensor_type(kF32, {named("n")}))},
          .outputs = {unshaped("y", kI64)},
          .nodes = {node("Abs", {"x"}, {"a"}, {}, "abs"), node("NonZero", {"a"}, {"z"}, {}, "find"),
                    node("Add", {"z", "z"}, {"y"}, {}, "twice")}};
  return {"data_dependent", model(g), {f32({4}, {0, 1, 0, 2})}};
}

// A shape that is computed: two segments, nothing on the host.
Case computed_shape() {
  Graph g{.inputs = {value("x", kF32, {6})},
          .outputs = {unshaped("y", kF32)},
          .initializers = {ints("from", {0}), ints("to", {2})},
          .nodes = {node("Abs", {"x"}, {"a"}, {}, "abs"),
                    node("Slice", {"a", "from", "to"}, {"head"}, {}, "head"),
                    node("Cast", {"head"}, {"shape"}, {attr_int("to", kI64)}, "cast"),
                    node("Reshape", {"a", "shape"}, {"r"}, {}, "reshape"),
                    node("Neg", {"r"}, {"y"}, {}, "neg")}};
  return {"computed_shape", model(g), {f32({6}, {-3, 2, 1, -1, 5, 6})}};
}

// Sequences, and a branch that data chooses.
Case sequences_and_branches() {
  const auto branch = [](const std::string& op) {
    return graph({.outputs = {unshaped("r", kF32)}, .nodes = {node(op, {"x"}, {"r"})}});
  };
  Graph g{.inputs = {value("x", kF32, {2})},
          .outputs = {unshaped("y", kF32), unshaped("z", kF32)},
          .initializers = {raw_tensor("zero", kI64, {}, raw_of(Ints{0})),
                           raw_tensor("f", kF32, {}, raw_of(std::vector<float>{0}))},
          .nodes = {node("SequenceConstruct", {"x", "x"}, {"s"}, {}, "pair"),
                    node("SequenceAt", {"s", "zero"}, {"first"}, {}, "first"),
                    node("Relu", {"first"}, {"y"}, {}, "relu"),
                    node("ReduceSum", {"x"}, {"total"}, {attr_int("keepdims", 0)}, "total"),
                    node("Greater", {"total", "f"}, {"positive"}, {}, "positive"),
                    node("If", {"positive"}, {"z"},
                         {attr_graph("then_branch", branch("Neg")),
                          attr_graph("else_branch", branch("Abs"))},
                         "choice")}};
  return {"sequences_and_branches", model(g), {f32({2}, {-1, 2})}};
}

std::string text_of(const session::BreakReport& r) {
  std::string text = fmt::format("nodes {} compiled {} breaks {} score {:.4f}\n", r.nodes,
                                 r.compiled, r.breaks, r.compilability_score());
  for (const auto& [op, count] : r.ops) text += fmt::format("  {} {}\n", count, op);
  if (r.breaks > 0) {
    text += fmt::format("first {} '{}' [{}]\n", r.first_op, r.first_node, r.first_reason);
  }
  return text + r.summary + "\n";
}

// Foreseen, and for models that can run: as a run found it, with what the log says.
std::string diagnose(const Case& c) {
  const auto loaded = model_file::load_model(c.bytes);
  if (!loaded.ok()) return loaded.status().to_string();
  std::string text = "== " + c.name + "\n-- foreseen\n";
  const auto foreseen = model_file::breaks_of_model(*loaded, {});
  text += foreseen.ok() ? text_of(*foreseen) : foreseen.status().to_string();
  const auto made = session(c.bytes);
  if (!made.ok()) return text + "-- refused\n" + made.status().to_string() + "\n";
  const auto out = (*made)->run(c.inputs);
  if (!out.ok()) return text + out.status().to_string() + "\n";
  text += "-- after a run\n" + text_of((*made)->breaks()) + "-- log\n";
  for (const Decision& d : (*made)->decisions()) {
    if (d.what.starts_with("graph_break")) text += d.to_string() + "\n";
  }
  return text;
}

std::string diagnose_all() {
  std::string text;
  for (const Case& c :
       {whole(), unknown(), data_dependent(), computed_shape(), sequences_and_branches()}) {
    text += diagnose(c);
  }
  return text;
}

TEST(GraphBreaks, DiagnosticsOfFiveGraphs) {
  const std::string found = diagnose_all();
  const std::string path = std::string(PYC_SOURCE_DIR) + "/tests/golden/graph_breaks.txt";
  if (std::getenv("PYC_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << found;
  std::ostringstream expected;
  expected << std::ifstream(path).rdbuf();
  EXPECT_EQ(found, expected.str());
  EXPECT_EQ(diagnose_all(), found) << "the same on two runs";
}

TEST(GraphBreaks, ScoreIsSupportedOverTotal) {
  const auto score = [](const Case& c) {
    const auto loaded = model_file::load_model(c.bytes);
    return model_file::breaks_of_model(*loaded, {})->compilability_score();
  };
  EXPECT_EQ(score(whole()), 1.0);
  EXPECT_EQ(score(unknown()), 0.5);
  EXPECT_TRUE(std::isnan(score(data_dependent()))) << "only a run knows what breaks";
  EXPECT_EQ(score(computed_shape()), 1.0) << "a break, but everything becomes code";
}

// Shape → Gather → Unsqueeze → Concat → Reshape around an attention head, as exporters write it.
Bytes exported_attention() {
  const auto scalar = [](const std::string& name, int64_t v) {
    return raw_tensor(name, kI64, {}, raw_of(Ints{v}));
  };
  std::vector<float> weights(8 * 8);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(i % 7) / 8.0F - 0.25F;
  }
  Graph g{.inputs = {value("x", tensor_type(kF32, {named("batch"), named("sequence"), fixed(8)})),
                     value("mask", tensor_type(kF32, {named("batch"), named("sequence")}))},
          .outputs = {value("y", tensor_type(kF32, {named("batch"), named("sequence"), fixed(8)}))},
          .initializers = {floats("w", {8, 8}, weights), scalar("i0", 0), scalar("i1", 1),
                           ints("heads", {2}), ints("width", {4}), ints("all", {8}),
                           ints("axis", {0}), ints("axes", {1, 2})}};
  g.nodes = {node("MatMul", {"x", "w"}, {"q"}),
             node("Shape", {"x"}, {"shape"}),
             node("Gather", {"shape", "i0"}, {"b"}),
             node("Gather", {"shape", "i1"}, {"s"}),
             node("Unsqueeze", {"b", "axis"}, {"b1"}),
             node("Unsqueeze", {"s", "axis"}, {"s1"}),
             node("Concat", {"b1", "s1", "heads", "width"}, {"split"}, {attr_int("axis", 0)}),
             node("Reshape", {"q", "split"}, {"h"}),
             node("Transpose", {"h"}, {"ht"}, {attr_ints("perm", {0, 2, 1, 3})}),
             node("Transpose", {"h"}, {"hk"}, {attr_ints("perm", {0, 2, 3, 1})}),
             node("MatMul", {"ht", "hk"}, {"scores"}),
             node("Unsqueeze", {"mask", "axes"}, {"m"}),
             node("Add", {"scores", "m"}, {"masked"}),
             node("Softmax", {"masked"}, {"p"}, {attr_int("axis", -1)}),
             node("MatMul", {"p", "ht"}, {"c"}),
             node("Transpose", {"c"}, {"ct"}, {attr_ints("perm", {0, 2, 1, 3})}),
             node("Concat", {"b1", "s1", "all"}, {"join"}, {attr_int("axis", 0)}),
             node("Reshape", {"ct", "join"}, {"y"})};
  return model(g);
}

TEST(GraphBreaks, ExportedAttentionIsOneSegment) {
  const auto made = session(exported_attention());
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  int64_t shapes = 0;
  for (const auto& [batch, sequence] : {std::pair<int64_t, int64_t>{1, 5}, {3, 7}, {2, 1}}) {
    const auto count = static_cast<size_t>(batch * sequence);
    const std::vector<DynValue> inputs{
        f32({batch, sequence, 8}, std::vector<float>(count * 8, 0.5F)),
        f32({batch, sequence}, std::vector<float>(count, 0.0F))};
    const auto out = (*made)->run(inputs);
    ASSERT_TRUE(out.ok()) << out.status().to_string();
    EXPECT_EQ((*out)[0].shape, (Ints{batch, sequence, 8}));
    EXPECT_EQ((*made)->stats().segments_compiled, ++shapes);
    EXPECT_EQ((*made)->stats().segments_run, shapes);
  }
  EXPECT_EQ((*made)->stats().host_calls, 0);
  EXPECT_EQ((*made)->breaks().breaks, 0);
  EXPECT_EQ((*made)->breaks().compilability_score(), 1.0);
}

// Strings are moved about on the host; what computes beside them is compiled.
TEST(GraphBreaks, StringsAreNoTensors) {
  constexpr int64_t kString = 8;
  Graph g{.inputs = {value("x", kString, {2, 1}), value("a", kF32, {2})},
          .outputs = {unshaped("y", kString), unshaped("b", kF32)},
          .nodes = {node("Transpose", {"x"}, {"y"}, {}, "turn"),
                    node("Relu", {"a"}, {"b"}, {}, "real")}};
  const auto made = session(model(g));
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const auto result = (*made)->run(
      std::vector<DynValue>{DynValue::of_strings({2, 1}, {"to", "day"}), f32({2}, {-1, 2})});
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  const auto breaks = (*made)->breaks();
  EXPECT_EQ(breaks.first_node, "turn");
  EXPECT_EQ(breaks.first_reason, "not_a_tensor");
  EXPECT_EQ(breaks.compiled, 1);
}

}  // namespace
}  // namespace pyc::onnx::test
