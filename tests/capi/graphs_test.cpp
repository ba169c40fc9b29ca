// Graphs, passes, ops, devices through the C ABI and pyc.hpp.

#include <cstring>

#include "capi/calls.h"

namespace pyc::test {
namespace {

TEST(Graphs, BuilderOperatorsAndGenericOpsGiveTheExpectedNumbers) {
  ModelBuilder b("layer");
  const Value x = b.input("x", PYC_DTYPE_F32, {1, 2});
  const Value w = b.constant<float>("w", PYC_DTYPE_F32, {2, 2}, {1, 2, 3, 4});
  const Value y = b.relu(b.matmul(x, w) + b.scalar(PYC_DTYPE_F32, -10));
  b.output(y * b.scalar(PYC_DTYPE_F32, 2), "y");
  b.output(b.op("reduce_sum", {w}, {{"axes", std::vector<int64_t>{0}}, {"keepdims", false}}));
  Model model = b.compile();
  const std::vector<float> given = {2, 3};
  const auto out = model(Tensor::of<float>(PYC_DTYPE_F32, {1, 2}, std::span<const float>(given)));
  EXPECT_EQ(out[0].numbers(), (std::vector<double>{2, 12}));
  EXPECT_EQ(out[1].numbers(), (std::vector<double>{4, 6}));
  EXPECT_STREQ(model.output(0).name, "y");
}

TEST(Graphs, PrintParseFingerprintAndCloneAgree) {
  const Graph graph = small_graph();
  const Graph again = Graph::parse(graph.print());
  EXPECT_EQ(graph.print(), again.print());
  EXPECT_EQ(graph.fingerprint(), again.fingerprint());
  EXPECT_EQ(graph.fingerprint().size(), 32u);
  Graph copy = graph.clone();
  copy.output(0);
  EXPECT_NE(copy.fingerprint(), graph.fingerprint());
}

TEST(Graphs, RefusalsNameTheNode) {
  pyc_graph* graph = nullptr;
  const std::string bad = "graph @g(%x: f32[2,3]) -> (%y) {\n  %y = matmul(%x, %x)\n}\n";
  const Refusal shapes =
      refusal([&](pyc_error** e) { return pyc_graph_parse(bad.data(), bad.size(), &graph, e); });
  EXPECT_EQ(shapes.status, PYC_STATUS_SHAPE_MISMATCH);
  EXPECT_EQ(shapes.node, "y");
  const std::string unknown = "graph @g(%x: f32[2]) -> (%y) {\n  %y = rellu(%x)\n}\n";
  const Refusal op = refusal(
      [&](pyc_error** e) { return pyc_graph_parse(unknown.data(), unknown.size(), &graph, e); });
  EXPECT_EQ(op.status, PYC_STATUS_UNKNOWN_OP);
  EXPECT_NE(op.message.find("did you mean 'relu'"), std::string::npos) << op.message;
  EXPECT_EQ(graph, nullptr);

  Graph built("g");
  const Refusal no_output =
      refusal([&](pyc_error** e) { return pyc_graph_verify(built.get(), e); });
  EXPECT_EQ(no_output.status, PYC_STATUS_VERIFY_FAILED);
  const Refusal bad_op = refusal([&](pyc_error** e) {
    pyc_value value = 0;
    const pyc_value inputs[] = {17};
    return pyc_graph_op(built.get(), "relu", inputs, 1, nullptr, "r", &value, e);
  });
  EXPECT_EQ(bad_op.status, PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(bad_op.node, "r");
}

TEST(Graphs, BadCallsAreRefused) {
  Graph graph("g");
  pyc_value value = 0;
  const int64_t shape[] = {2, -1};
  const float data[2] = {};
  EXPECT_EQ(pyc_graph_input(graph.get(), "x", PYC_DTYPE_F32, shape, 2, &value, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(pyc_graph_input(graph.get(), "x", 77, shape, 1, &value, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(pyc_graph_input(graph.get(), "x", PYC_DTYPE_F32, shape, 99, &value, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(pyc_graph_input(graph.get(), "x", PYC_DTYPE_F32, nullptr, 1, &value, nullptr),
            PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_graph_input(graph.get(), nullptr, PYC_DTYPE_F32, shape, 1, &value, nullptr),
            PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_graph_input(nullptr, "x", PYC_DTYPE_F32, shape, 1, &value, nullptr),
            PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_graph_constant(graph.get(), "c", PYC_DTYPE_F32, shape, 1, data, 7, &value, nullptr),
            PYC_STATUS_SIZE_MISMATCH);
  EXPECT_EQ(
      pyc_graph_constant(graph.get(), "c", PYC_DTYPE_F32, shape, 1, nullptr, 8, &value, nullptr),
      PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(
      pyc_graph_random(graph.get(), "r", PYC_DTYPE_F32, shape, 1, 1, 2.0, 1.0, &value, nullptr),
      PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(pyc_graph_output(graph.get(), 5, nullptr), PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(pyc_graph_find_value(graph.get(), "nothing", &value, nullptr), PYC_STATUS_NOT_FOUND);
  EXPECT_EQ(pyc_graph_print(graph.get(), nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_attrs_set_ints(nullptr, "a", nullptr, 0, nullptr), PYC_STATUS_NULL_POINTER);
  pyc_graph_destroy(nullptr);
  pyc_attrs_destroy(nullptr);
  const char binary[] = "\x08\x07\x12\x00pytorch";
  pyc_graph* loaded = nullptr;
  EXPECT_EQ(pyc_graph_load_bytes(binary, sizeof binary, &loaded, nullptr), PYC_STATUS_PARSE_ERROR);
  EXPECT_EQ(pyc_graph_load_file("/no/such/file", &loaded, nullptr), PYC_STATUS_NOT_FOUND);
}

TEST(Graphs, NodesAndValuesCanBeWalked) {
  const Graph graph = small_graph();
  ASSERT_EQ(graph.node_count(), 2u);
  const pyc_node_info node = graph.node(0);
  EXPECT_STREQ(node.op, "matmul");
  ASSERT_EQ(node.input_count, 2u);
  EXPECT_STREQ(graph.value(node.inputs[0]).name, "x");
  EXPECT_EQ(graph.value(node.inputs[0]).kind, PYC_VALUE_INPUT);
  EXPECT_EQ(graph.value(node.inputs[1]).kind, PYC_VALUE_CONSTANT);
  EXPECT_EQ(graph.value(node.outputs[0]).kind, PYC_VALUE_RESULT);
  EXPECT_EQ(graph.outputs(), std::vector<pyc_value>{node.outputs[0] + 1});
  EXPECT_THROW(graph.node(2), Error);
}

TEST(Passes, RunByNameInOrderAndAllByDefault) {
  const Graph graph =
      Graph::parse("graph @g(%x: f32[2,3]) -> (%y) {\n  %y = softmax(%x) {axis=1}\n}\n");
  ASSERT_GT(pyc_pass_count(), 0u);
  EXPECT_GT(graph.run_passes({"decompose"}).node_count(), 1u);
  EXPECT_EQ(graph.run_passes({"eliminate_dead"}).print(), graph.print());
  EXPECT_EQ(graph.run_passes().print(), graph.dump("passes"));
  const Refusal unknown = refusal([&](pyc_error** e) {
    const char* names[] = {"decompos"};
    pyc_graph* out = nullptr;
    return pyc_run_passes(graph.get(), names, 1, &out, e);
  });
  EXPECT_EQ(unknown.status, PYC_STATUS_UNKNOWN_OPTION);
  EXPECT_NE(unknown.message.find("decompose"), std::string::npos);
}

TEST(Registry, OpsAreListedWithTheirAttributes) {
  size_t index = 0;
  check([&](pyc_error** e) { return pyc_op_find("softmax", &index, e); });
  auto op = sized<pyc_op_info>();
  check([&](pyc_error** e) { return pyc_op(index, &op, e); });
  EXPECT_STREQ(op.name, "softmax");
  EXPECT_EQ(op.composite, 1);
  ASSERT_EQ(op.attribute_count, 1u);
  auto attribute = sized<pyc_attribute_info>();
  check([&](pyc_error** e) { return pyc_op_attribute(index, 0, &attribute, e); });
  EXPECT_STREQ(attribute.name, "axis");
  EXPECT_STREQ(attribute.kind, "int");
  const Refusal unknown = refusal([&](pyc_error** e) { return pyc_op_find("softmx", &index, e); });
  EXPECT_EQ(unknown.status, PYC_STATUS_UNKNOWN_OP);
  EXPECT_NE(unknown.message.find("softmax"), std::string::npos);
  EXPECT_EQ(pyc_op(pyc_op_count(), &op, nullptr), PYC_STATUS_INVALID_ARGUMENT);
}

TEST(Registry, DtypesOfAnOpAreWhatItsTypeRuleTakes) {
  uint64_t bits = 0;
  check([&](pyc_error** e) { return pyc_device_op_dtypes("cpu", "exp", &bits, e); });
  EXPECT_TRUE(bits & (1u << PYC_DTYPE_F32));
  EXPECT_TRUE(bits & (1u << PYC_DTYPE_BF16));
  EXPECT_FALSE(bits & (1u << PYC_DTYPE_I32));
  check([&](pyc_error** e) { return pyc_device_op_dtypes("reference", "gather", &bits, e); });
  EXPECT_TRUE(bits & (1u << PYC_DTYPE_BOOL));
  EXPECT_EQ(pyc_device_op_dtypes("gpu9", "exp", &bits, nullptr), PYC_STATUS_UNKNOWN_OPTION);
  EXPECT_EQ(pyc_device_op_dtypes("cpu", "expp", &bits, nullptr), PYC_STATUS_UNKNOWN_OP);
}

TEST(Registry, CudaIsUnavailableWithAReason) {
  auto info = sized<pyc_cuda_info>();
  ASSERT_EQ(pyc_cuda_get_info(&info, nullptr), PYC_STATUS_OK);
  EXPECT_EQ(info.available == 0, std::strlen(info.reason) > 0);
  EXPECT_GT(std::strlen(info.found), 0U);
  if (info.available != 0) return;
  CompileOptions options;
  options.set("device", "cuda");
  const Graph graph = Graph::parse("graph @g(%x: f32[4]) -> (%y) {\n  %y = relu(%x)\n}\n");
  try {
    const Model model(graph, options);
    ADD_FAILURE() << "compiled for a device that is not there";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), PYC_STATUS_UNSUPPORTED);
    EXPECT_NE(std::string(e.what()).find(info.reason), std::string::npos) << e.what();
  }
}

TEST(Common, NamesCodesAndSuggestions) {
  EXPECT_EQ(pyc_abi_version(), PYC_ABI_VERSION);
  EXPECT_STREQ(pyc_status_name(PYC_STATUS_SHAPE_MISMATCH), "shape_mismatch");
  EXPECT_STREQ(pyc_status_name(1234), "unknown");
  EXPECT_STREQ(pyc_status_cure(PYC_STATUS_OK), "");
  for (pyc_status s = 1; s <= PYC_STATUS_INTERNAL; ++s) EXPECT_STRNE(pyc_status_cure(s), "") << s;
  EXPECT_EQ(pyc_dtype_name(-1), nullptr);
  EXPECT_EQ(pyc_dtype_size(pyc_dtype_count()), 0);
  for (pyc_dtype d = 0; d < pyc_dtype_count(); ++d) {
    pyc_dtype back = -1;
    EXPECT_EQ(pyc_dtype_from_name(pyc_dtype_name(d), &back, nullptr), PYC_STATUS_OK);
    EXPECT_EQ(back, d);
  }
  pyc_dtype unknown = -1;
  EXPECT_EQ(pyc_dtype_from_name("f33", &unknown, nullptr), PYC_STATUS_UNKNOWN_OPTION);
  const char* known[] = {"--device", "--threads"};
  EXPECT_STREQ(pyc_closest_name("--devcie", known, 2), "--device");
  EXPECT_EQ(pyc_closest_name("zzzzzzzz", known, 2), nullptr);
  const char* devices[] = {"cpu", "cuda"};
  EXPECT_STREQ(pyc_closest_name("gpu", devices, 2), "cuda");
  EXPECT_EQ(pyc_closest_name(nullptr, known, 2), nullptr);
  EXPECT_EQ(pyc_error_code(nullptr), PYC_STATUS_OK);
  EXPECT_STREQ(pyc_error_message(nullptr), "");
  pyc_error_destroy(nullptr);
  pyc_text_destroy(nullptr);
}

}  // namespace
}  // namespace pyc::test
