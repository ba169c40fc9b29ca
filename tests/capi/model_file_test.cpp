// Model files through the C ABI: what they declare, what is not supported, what breaks.

#include "capi/calls.h"
#include "onnx/model_writer.h"

namespace pyc::test {
namespace {

namespace w = onnx::test;

struct File {
  explicit File(const w::Bytes& bytes) {
    EXPECT_EQ(pyc_model_file_load_bytes(bytes.data(), bytes.size(), handle.put(), nullptr),
              PYC_STATUS_OK);
  }
  Handle<pyc_model_file, pyc_model_file_destroy> handle;
};

// Thirty nodes without a meaning, one of them in a region, and one with.
w::Bytes mostly_unknown() {
  w::Graph g{.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("n")}))},
             .outputs = {w::unshaped("y", w::kF32)}};
  std::string last = "x";
  for (int i = 0; i < 29; ++i) {
    const std::string next = "v" + std::to_string(i);
    g.nodes.push_back(w::node("Rellu", {last}, {next}, {}, "bad" + std::to_string(i)));
    last = next;
  }
  const w::Bytes branch =
      w::graph({.outputs = {w::unshaped("b", w::kF32)},
                .nodes = {w::node("Wobble", {"x"}, {"b"}, {}, "deep", "my.domain")}});
  g.initializers = {w::raw_tensor("yes", w::kBool, {}, std::string(1, '\1'))};
  g.nodes.push_back(w::node(
      "If", {"yes"}, {"c"},
      {w::attr_graph("then_branch", branch), w::attr_graph("else_branch", branch)}, "choice"));
  g.nodes.push_back(w::node("Add", {last, "c"}, {"y"}, {}, "sum"));
  return w::model(g, 18, w::text(8, w::opset(1, "my.domain")));
}

TEST(ModelFiles, NameEveryUnsupportedNode) {
  const File file(mostly_unknown());
  ASSERT_EQ(pyc_model_file_unsupported_count(file.handle.get()), 31u);
  auto node = sized<pyc_unsupported_node>();
  ASSERT_EQ(pyc_model_file_unsupported(file.handle.get(), 28, &node, nullptr), PYC_STATUS_OK);
  EXPECT_STREQ(node.name, "bad28");
  EXPECT_STREQ(node.op, "Rellu");
  EXPECT_STREQ(node.domain, "");
  EXPECT_STREQ(node.nearest, "Relu");
  EXPECT_EQ(node.opset, 18);
  ASSERT_EQ(pyc_model_file_unsupported(file.handle.get(), 29, &node, nullptr), PYC_STATUS_OK);
  EXPECT_STREQ(node.name, "deep");
  EXPECT_STREQ(node.domain, "my.domain");
  EXPECT_EQ(pyc_model_file_unsupported(file.handle.get(), 31, &node, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);

  const Refusal r = refusal([&](pyc_error** e) {
    pyc_model* model = nullptr;
    return pyc_model_file_compile(file.handle.get(), nullptr, &model, e);
  });
  EXPECT_EQ(r.status, PYC_STATUS_UNKNOWN_OP);
  EXPECT_EQ(r.node, "bad0");
  for (int i = 0; i < 29; ++i) {
    EXPECT_NE(r.message.find("'bad" + std::to_string(i) + "'"), std::string::npos) << i;
  }
  EXPECT_NE(r.message.find("'deep'"), std::string::npos);
}

TEST(ModelFiles, BreaksOfAFileThatCannotRun) {
  const File file(mostly_unknown());
  Breaks breaks;
  ASSERT_EQ(pyc_model_file_get_breaks(file.handle.get(), nullptr, breaks.put(), nullptr),
            PYC_STATUS_OK);
  const pyc_break_summary s = breaks.summary();
  EXPECT_EQ(s.nodes, 31);
  EXPECT_EQ(s.compiled, 2);  // If and Add have a meaning
  EXPECT_EQ(s.break_count, 29);
  EXPECT_DOUBLE_EQ(s.compilability_score, 2.0 / 31.0);
  EXPECT_STREQ(s.first_node, "bad0");
  EXPECT_STREQ(s.first_reason, "no_rule");
  ASSERT_EQ(breaks.ops().size(), 1u);
  EXPECT_STREQ(breaks.ops()[0].op, "unknown");
  EXPECT_EQ(breaks.ops()[0].count, 29);
}

TEST(ModelFiles, DescribeThemselves) {
  const File file(mostly_unknown());
  EXPECT_EQ(pyc_model_file_input_count(file.handle.get()), 1u);
  auto info = sized<pyc_value_info>();
  ASSERT_EQ(pyc_model_file_input(file.handle.get(), 0, &info, nullptr), PYC_STATUS_OK);
  EXPECT_STREQ(info.type_text, "f32[n]");
  const std::string json = take_text([&](char** text, pyc_error** e) {
    return pyc_model_file_describe(file.handle.get(), text, e);
  });
  for (const std::string part :
       {"\"format\": \"onnx\"", "\"Rellu\": 29", "\"bad17\"", "\"my.domain\": 1"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
  }
}

TEST(ModelFiles, TellWhatTheirMakerWrote) {
  const w::Bytes facts = w::text(2, "maker") + w::text(4, "org.example") + w::number(5, 3) +
                         w::text(6, "two\nlines") +
                         w::text(14, w::text(1, "labels") + w::text(2, "a")) +
                         w::text(14, w::text(1, "labels") + w::text(2, "a,b"));
  const w::Graph g{.inputs = {w::value("x", w::kF32, {2})},
                   .outputs = {w::value("y", w::kF32, {2})},
                   .nodes = {w::node("Relu", {"x"}, {"y"})}};
  const File file(w::model(g, 18, facts));
  const std::string json = take_text([&](char** text, pyc_error** e) {
    return pyc_model_file_describe(file.handle.get(), text, e);
  });
  for (const std::string part :
       {"\"producer\": \"maker\"", "\"graph\": \"g\"", "\"domain\": \"org.example\"",
        "\"version\": 3", "\"description\": \"two\\nlines\"", "\"labels\": \"a,b\""}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
  }
  EXPECT_EQ(json.find("\"labels\": \"a\""), std::string::npos);
}

TEST(ModelFiles, TextIsWholeAndHasNothingToChoose) {
  const std::string text = small_graph().print();
  const File file(text);
  Breaks breaks;
  ASSERT_EQ(pyc_model_file_get_breaks(file.handle.get(), nullptr, breaks.put(), nullptr),
            PYC_STATUS_OK);
  EXPECT_EQ(breaks.summary().compilability_score, 1.0);
  EXPECT_EQ(breaks.summary().break_count, 0);
  CompileOptions options;
  options.set("dim", "n=2");
  Handle<pyc_graph, pyc_graph_destroy> graph;
  EXPECT_EQ(pyc_model_file_graph(file.handle.get(), options.get(), graph.put(), nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
}

std::string text_of(const File& file) {
  return take_text([&](char** text, pyc_error** e) {
    return pyc_model_file_text(file.handle.get(), nullptr, text, e);
  });
}

TEST(ModelFiles, HaveATextThatIsAModelFile) {
  const File file(w::model({.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("n")}))},
                            .outputs = {w::unshaped("y", w::kF32)},
                            .nodes = {w::node("Relu", {"x"}, {"y"}, {}, "relu")}}));
  const std::string text = text_of(file);
  EXPECT_EQ(text,
            "open graph @g(%x: f32[n]) -> (%y) {\n"
            "  %y = onnx.Relu[18](%x) @relu : f32[*]\n"
            "}\n");
  EXPECT_EQ(text_of(File(text)), text);
  // Looked at, though it cannot be read back.
  EXPECT_NE(text_of(File(mostly_unknown())).find("<no op>[18](%x) @bad0"), std::string::npos);
  EXPECT_EQ(pyc_model_file_text(file.handle.get(), nullptr, nullptr, nullptr),
            PYC_STATUS_NULL_POINTER);
  char* unused = nullptr;
  EXPECT_EQ(pyc_model_file_text(nullptr, nullptr, &unused, nullptr), PYC_STATUS_NULL_POINTER);
}

}  // namespace
}  // namespace pyc::test
