// Models with open shapes through the C ABI.

#include <array>
#include <cstring>
#include <thread>

#include "capi/calls.h"
#include "onnx/model_writer.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

namespace w = onnx::test;

// y = Relu(x·w + b), x f32[batch,3], b f32[batch,2].
w::Bytes open_linear() {
  return w::model(
      {.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("batch"), w::fixed(3)})),
                  w::value("b", w::tensor_type(w::kF32, {w::named("batch"), w::fixed(2)}))},
       .outputs = {w::value("y", w::tensor_type(w::kF32, {w::named("batch"), w::fixed(2)}))},
       .initializers = {w::floats("w", {3, 2}, {1, 2, 3, 4, 5, 6})},
       .nodes = {w::node("MatMul", {"x", "w"}, {"p"}, {}, "product"),
                 w::node("Add", {"p", "b"}, {"s"}, {}, "sum"),
                 w::node("Relu", {"s"}, {"y"}, {}, "relu")}});
}

// The places of the elements that are not 0, and then twice the places: a shape that depends on
// data.
w::Bytes non_zero() {
  return w::model({.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("n")}))},
                   .outputs = {w::unshaped("y", w::kI64)},
                   .nodes = {w::node("NonZero", {"x"}, {"places"}, {}, "find"),
                             w::node("Add", {"places", "places"}, {"y"}, {}, "twice")}});
}

Model compiled(const w::Bytes& bytes, const CompileOptions& options = {}) {
  const TempFolder folder;
  const std::string path = folder.file("model.onnx");
  FILE* file = fopen(path.c_str(), "wb");
  fwrite(bytes.data(), 1, bytes.size(), file);
  fclose(file);
  return Model::load(path, options);
}

Tensor ramp(const Shape& shape) {
  Tensor t(PYC_DTYPE_F32, shape);
  float next = 0;
  for (float& x : t.elements<float>()) x = next++;
  return t;
}

Refusal run_refused(Model& model, const std::vector<const Tensor*>& inputs) {
  std::vector<pyc_tensor_view> views;
  for (const Tensor* t : inputs) views.push_back(t->view());
  return refusal([&](pyc_error** e) {
    pyc_results* results = nullptr;
    const pyc_status status =
        pyc_run_model_dynamic(model.get(), views.data(), views.size(), &results, nullptr, e);
    EXPECT_EQ(results, nullptr);
    pyc_results_destroy(results);
    return status;
  });
}

TEST(OpenModels, DeclareTheirOpenDims) {
  const Model model = compiled(open_linear());
  EXPECT_TRUE(model.is_open());
  const pyc_value_info x = model.input(0);
  EXPECT_EQ(Shape(x.shape, x.shape + x.rank), (Shape{-1, 3}));
  EXPECT_STREQ(x.symbols[0], "batch");
  EXPECT_STREQ(x.symbols[1], "");
  EXPECT_STREQ(x.type_text, "f32[batch,3]");
  EXPECT_EQ(x.type, PYC_TYPE_TENSOR);
  EXPECT_EQ(x.dtype, PYC_DTYPE_F32);
  EXPECT_EQ(x.bytes, -1);
  EXPECT_STREQ(model.output(0).symbols[0], "batch");
}

TEST(OpenModels, AnOldCallersStructIsNotWrittenBeyondItsEnd) {
  const Model model = compiled(open_linear());
  pyc_value_info info{};
  info.struct_size = offsetof(pyc_value_info, type);
  info.type = 77;
  ASSERT_EQ(pyc_model_input(model.get(), 0, &info, nullptr), PYC_STATUS_OK);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.type, 77);
}

TEST(OpenModels, RunWithEveryFittingShape) {
  Model model = compiled(open_linear());
  for (const int64_t batch : {1, 4, 2, 4, 0}) {
    const Tensor x = ramp({batch, 3});
    const Tensor b = ramp({batch, 2});
    const std::vector<pyc_tensor_view> in = {x.view(), b.view()};
    const Results results = model.run_dynamic(in);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(pyc_result_type(results[0]), PYC_TYPE_TENSOR);
    const pyc_tensor_view y = results.tensor(0);
    EXPECT_EQ(Shape(y.shape, y.shape + y.rank), (Shape{batch, 2}));
    const auto* numbers = static_cast<const float*>(y.data);
    if (batch > 0) {
      EXPECT_EQ(numbers[0], 13);  // 0·1 + 1·3 + 2·5 + 0
      EXPECT_EQ(numbers[1], 17);
    }
  }
  // 4 came twice: its program was kept.
  EXPECT_EQ(model.stats().segments_compiled, 4);
  EXPECT_EQ(model.stats().runs, 5);
}

TEST(OpenModels, GiveTheSameIntoTheCallersMemory) {
  Model model = compiled(open_linear());
  const Tensor x = ramp({2, 3});
  const Tensor b = ramp({2, 2});
  const Tensor y(PYC_DTYPE_F32, {2, 2});
  const std::vector<pyc_tensor_view> in = {x.view(), b.view()};
  const std::vector<pyc_tensor_view> out = {y.view()};
  const pyc_run_stats stats = model.run(in, out);
  EXPECT_GT(stats.steps, 0);
  EXPECT_EQ(y.elements<float>()[0], 13);
  const Tensor wrong(PYC_DTYPE_F32, {1, 2});
  const pyc_tensor_view wrong_view = wrong.view();
  const Refusal r = refusal([&](pyc_error** e) {
    return pyc_run_model(model.get(), in.data(), 2, &wrong_view, 1, nullptr, e);
  });
  EXPECT_EQ(r.status, PYC_STATUS_SHAPE_MISMATCH);
  EXPECT_EQ(r.node, "y");
  EXPECT_NE(r.message.find("f32[2,2]"), std::string::npos) << r.message;
}

TEST(OpenModels, RefuseContradictionsByName) {
  Model model = compiled(open_linear());
  const Tensor x = ramp({2, 3});
  const Tensor b = ramp({3, 2});
  const Refusal two_sizes = run_refused(model, {&x, &b});
  EXPECT_EQ(two_sizes.status, PYC_STATUS_SHAPE_MISMATCH);
  EXPECT_NE(two_sizes.message.find("dim 'batch' is 2 in input 'x' and 3 in input 'b'"),
            std::string::npos)
      << two_sizes.message;
  const Tensor wide = ramp({2, 4});
  const Refusal fixed_dim = run_refused(model, {&wide, &b});
  EXPECT_EQ(fixed_dim.status, PYC_STATUS_SHAPE_MISMATCH);
  EXPECT_EQ(fixed_dim.node, "x");
  const Tensor flat = ramp({6});
  EXPECT_EQ(run_refused(model, {&flat, &b}).status, PYC_STATUS_RANK_MISMATCH);
  EXPECT_EQ(run_refused(model, {&x}).status, PYC_STATUS_INVALID_ARGUMENT);
  const Tensor ints(PYC_DTYPE_I32, {2, 3});
  EXPECT_EQ(run_refused(model, {&ints, &b}).status, PYC_STATUS_DTYPE_MISMATCH);
  EXPECT_EQ(model.stats().guard_miss_count, 10);  // each was called twice
  EXPECT_EQ(model.stats().failed_runs, 10);
}

TEST(OpenModels, ChosenDimsMakeOneProgram) {
  CompileOptions options;
  options.set("dim", "batch=2");
  Model model = compiled(open_linear(), options);
  EXPECT_FALSE(model.is_open());
  EXPECT_EQ(model.stats().segments_compiled, 1);
  EXPECT_EQ(model.output(0).bytes, 16);
  EXPECT_EQ(model(ramp({2, 3}), ramp({2, 2}))[0].elements<float>()[0], 13);

  options.reset("dim").set("shape", "x=2,3");
  EXPECT_FALSE(compiled(open_linear(), options).is_open()) << "batch is known from x";
}

TEST(OpenModels, WrongChoicesAreRefused) {
  const auto status_of = [](const CompileOptions& options) {
    try {
      compiled(open_linear(), options);
    } catch (const Error& e) {
      return std::pair(e.code(), e.message());
    }
    return std::pair(pyc_status{PYC_STATUS_OK}, std::string());
  };
  CompileOptions options;
  options.set("dim", "bach=2");
  auto [code, message] = status_of(options);
  EXPECT_EQ(code, PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(message.find("did you mean 'batch'?"), std::string::npos) << message;
  options.reset("dim").set("dim", "batch=2").set("shape", "x=5,3");
  std::tie(code, message) = status_of(options);
  EXPECT_EQ(code, PYC_STATUS_SHAPE_MISMATCH);
  EXPECT_NE(message.find("2 in the chosen dims and 5 in input 'x'"), std::string::npos) << message;
  options.reset("dim").set("shape", "x=2,3,4");
  EXPECT_EQ(status_of(options).first, PYC_STATUS_RANK_MISMATCH);
  options.reset("shape").set("shape", "z=2,3");
  EXPECT_EQ(status_of(options).first, PYC_STATUS_INVALID_ARGUMENT);
}

TEST(OpenModels, ShapesThatDependOnDataAreKnownAfterwards) {
  Model model = compiled(non_zero());
  const std::vector<float> elements = {0, 7, 0, 3};
  const Tensor x = Tensor::of<float>(PYC_DTYPE_F32, {4}, elements);
  const std::vector<pyc_tensor_view> in = {x.view()};
  const Results results = model.run_dynamic(in);
  const pyc_tensor_view y = results.tensor(0);
  EXPECT_EQ(y.dtype, PYC_DTYPE_I64);
  EXPECT_EQ(Shape(y.shape, y.shape + y.rank), (Shape{1, 2}));
  EXPECT_EQ(static_cast<const int64_t*>(y.data)[0], 2);
  EXPECT_EQ(static_cast<const int64_t*>(y.data)[1], 6);
  EXPECT_EQ(model.stats().host_calls, 1);
  EXPECT_EQ(model.stats().fallback_count, 1) << "NonZero of something known becomes code";
  const Breaks report = model.breaks();  // owns the texts
  const pyc_break_summary breaks = report.summary();
  EXPECT_EQ(breaks.nodes, 2);
  EXPECT_EQ(breaks.compiled, 1);
  EXPECT_EQ(breaks.compilability_score, 0.5);
  EXPECT_STREQ(breaks.first_node, "find");
  EXPECT_STREQ(breaks.first_op, "onnx.NonZero");
  EXPECT_STREQ(breaks.first_reason, "host_function");
}

TEST(OpenModels, ResultsDoNotPointIntoTheCallersInputs) {
  Model model =
      compiled(w::model({.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("n")}))},
                         .outputs = {w::unshaped("y", w::kF32)},
                         .nodes = {w::node("Identity", {"x"}, {"y"})}}));
  Tensor x = ramp({3});
  const std::vector<pyc_tensor_view> in = {x.view()};
  const Results results = model.run_dynamic(in);
  x.elements<float>()[1] = 50;
  EXPECT_EQ(static_cast<const float*>(results.tensor(0).data)[1], 1);
}

TEST(OpenModels, OutputsOfOtherKinds) {
  Model model = compiled(
      w::model({.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("n")}))},
                .outputs = {w::value("seq", w::text(4, w::text(1, w::text(1, w::number(1, 1))))),
                            w::unshaped("text", 8)},
                .nodes = {w::node("SequenceConstruct", {"x", "x"}, {"seq"}),
                          w::node("Cast", {"x"}, {"text"}, {w::attr_int("to", 8)})}}));
  EXPECT_EQ(model.output(0).type, PYC_TYPE_SEQUENCE);
  EXPECT_EQ(model.output(0).dtype, PYC_DTYPE_ANY);
  EXPECT_EQ(model.output(1).type, PYC_TYPE_STRINGS);
  const Tensor x = ramp({2});
  const std::vector<pyc_tensor_view> in = {x.view()};
  const Results results = model.run_dynamic(in);
  ASSERT_EQ(pyc_result_type(results[0]), PYC_TYPE_SEQUENCE);
  ASSERT_EQ(pyc_result_count(results[0]), 2u);
  const pyc_result* item = nullptr;
  ASSERT_EQ(pyc_result_item(results[0], 1, &item, nullptr), PYC_STATUS_OK);
  EXPECT_STREQ(pyc_result_type_text(item), "f32[2]");
  ASSERT_EQ(pyc_result_type(results[1]), PYC_TYPE_STRINGS);
  const char* text = nullptr;
  size_t size = 0;
  ASSERT_EQ(pyc_result_string(results[1], 1, &text, &size, nullptr), PYC_STATUS_OK);
  EXPECT_EQ(std::string(text, size), "1.0");
  auto view = sized<pyc_tensor_view>();
  EXPECT_EQ(pyc_result_tensor(results[0], &view, nullptr), PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(pyc_result_item(results[0], 2, &item, nullptr), PYC_STATUS_INVALID_ARGUMENT);
}

TEST(OpenModels, InputsThatAreNoTensorsAreRefusedByName) {
  Model model = compiled(w::model({.inputs = {w::unshaped("words", 8)},
                                   .outputs = {w::unshaped("y", 8)},
                                   .nodes = {w::node("StringConcat", {"words", "words"}, {"y"})}},
                                  20));
  EXPECT_EQ(model.input(0).type, PYC_TYPE_STRINGS);
  const Tensor x = ramp({2});
  const Refusal r = run_refused(model, {&x});
  EXPECT_EQ(r.status, PYC_STATUS_UNSUPPORTED);
  EXPECT_EQ(r.node, "words");
}

TEST(OpenModels, ManyThreadsRunOneModel) {
  Model model = compiled(open_linear());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = ramp({t + 1, 3});
      const Tensor b = ramp({t + 1, 2});
      const std::vector<pyc_tensor_view> in = {x.view(), b.view()};
      for (int i = 0; i < 8; ++i) {
        const Results results = model.run_dynamic(in);
        if (static_cast<const float*>(results.tensor(0).data)[0] != 13) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(model.stats().runs, 32);
}

TEST(OpenModels, EndlessLoopsEndAtTheLimit) {
  const w::Bytes body =
      w::graph({.inputs = {w::value("i", w::kI64, {}), w::value("go", w::kBool, {}),
                           w::value("a", w::kF32, {1})},
                .outputs = {w::value("go", w::kBool, {}), w::value("b", w::kF32, {1})},
                .nodes = {w::node("Add", {"a", "a"}, {"b"})}});
  const w::Bytes bytes =
      w::model({.inputs = {w::value("x", w::kF32, {1}), w::value("go_on", w::kBool, {})},
                .outputs = {w::value("y", w::kF32, {1})},
                .nodes = {w::node("Loop", {"", "go_on", "x"}, {"y"}, {w::attr_graph("body", body)},
                                  "round")}});
  CompileOptions options;
  options.set("loop_limit", 100);
  Model model = compiled(bytes, options);
  const Tensor x = ramp({1});
  const Tensor go = Tensor::of<uint8_t>(PYC_DTYPE_BOOL, {}, std::vector<uint8_t>{1});
  const Refusal r = run_refused(model, {&x, &go});
  EXPECT_EQ(r.status, PYC_STATUS_BUDGET_EXCEEDED);
  EXPECT_EQ(r.node, "round");
  EXPECT_NE(r.message.find("more than 100 iterations"), std::string::npos) << r.message;
}

// Trip by trip, x doubles.
w::Bytes doubling() {
  const w::Bytes body = w::graph(
      {.inputs = {w::value("i", w::kI64, {}), w::value("go", w::kBool, {}),
                  w::unshaped("a", w::kF32)},
       .outputs = {w::value("go", w::kBool, {}), w::unshaped("b", w::kF32)},
       .nodes = {w::node("Concat", {"a", "a"}, {"b"}, {w::attr_int("axis", 0)}, "double")}});
  return w::model({.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("n")})),
                              w::value("trips", w::kI64, {})},
                   .outputs = {w::unshaped("y", w::kF32)},
                   .nodes = {w::node("Loop", {"trips", "", "x"}, {"y"},
                                     {w::attr_graph("body", body)}, "grow")}});
}

TEST(OpenModels, ValuesEndAtTheirLimit) {
  CompileOptions options;
  options.set("value_limit", 1 << 20);
  Model model = compiled(doubling(), options);
  const Tensor x = ramp({4});
  const Tensor many = Tensor::of<int64_t>(PYC_DTYPE_I64, {}, std::vector<int64_t>{60});
  const Refusal r = run_refused(model, {&x, &many});
  EXPECT_EQ(r.status, PYC_STATUS_BUDGET_EXCEEDED);
  EXPECT_EQ(r.node, "double");
  EXPECT_NE(r.message.find("asks for 1048576 bytes"), std::string::npos) << r.message;
  EXPECT_NE(r.message.find("the value limit is 1048576"), std::string::npos) << r.message;

  const Tensor two = Tensor::of<int64_t>(PYC_DTYPE_I64, {}, std::vector<int64_t>{2});
  const std::vector<pyc_tensor_view> in{x.view(), two.view()};
  auto stats = sized<pyc_run_stats>();
  const Results results = model.run_dynamic(in, &stats);
  EXPECT_EQ(stats.value_bytes, 64);
  EXPECT_EQ(stats.value_peak_bytes, 32 + 1 + 64);
  // Callers that know the first version only get what that had.
  stats.struct_size = offsetof(pyc_run_stats, value_bytes);
  stats.value_bytes = 77;
  const Results again = model.run_dynamic(in, &stats);
  EXPECT_GT(stats.wall_ns, 0);
  EXPECT_EQ(stats.value_bytes, 77);
}

// A sequence that holds an input many times holds it once; so does what the caller gets.
TEST(OpenModels, ResultsShareTheirCopiesOfInputs) {
  const w::Bytes sequence = w::text(4, w::text(1, w::tensor_type(w::kF32, {w::named("n")})));
  Model model =
      compiled(w::model({.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("n")}))},
                         .outputs = {w::value("y", sequence)},
                         .nodes = {w::node("SequenceConstruct", {"x", "x"}, {"y"})}}));
  const Tensor x = ramp({4});
  const pyc_tensor_view in = x.view();
  const Results results = model.run_dynamic({&in, 1});
  const void* data[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    const pyc_result* item = nullptr;
    auto view = sized<pyc_tensor_view>();
    ASSERT_EQ(pyc_result_item(results[0], i, &item, nullptr), PYC_STATUS_OK);
    ASSERT_EQ(pyc_result_tensor(item, &view, nullptr), PYC_STATUS_OK);
    data[i] = view.data;
  }
  EXPECT_EQ(data[0], data[1]);
  EXPECT_NE(data[0], x.view().data);
}

// An empty view needs no memory, whatever it says of its bytes.
TEST(OpenModels, EmptyInputsWithoutMemoryMayStateBytes) {
  const auto type = [](const char* n) { return w::tensor_type(w::kF32, {w::named(n)}); };
  Model model = compiled(
      w::model({.inputs = {w::value("x", type("n")), w::value("y", type("m"))},
                .outputs = {w::value("z", type("k"))},
                .nodes = {w::node("Concat", {"x", "y"}, {"z"}, {w::attr_int("axis", 0)})}}));
  const Tensor x = ramp({0});
  const Tensor y = ramp({4});
  std::array in = {x.view(), y.view()};
  in[0].data = nullptr;
  in[0].bytes = 8;
  const Results results = model.run_dynamic(in);
  auto view = sized<pyc_tensor_view>();
  ASSERT_EQ(pyc_result_tensor(results[0], &view, nullptr), PYC_STATUS_OK);
  EXPECT_EQ(view.shape[0], 4);
}

}  // namespace
}  // namespace pyc::test
