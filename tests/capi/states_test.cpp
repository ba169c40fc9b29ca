// State through the C ABI.

#include "capi/calls.h"

namespace pyc::test {
namespace {

constexpr const char* kCounter =
    "graph @counter(%x: f32[4], %sum: f32[4]) -> (%y, %sum.next) {\n"
    "  %sum.next = add(%sum, %x)\n"
    "  %y = neg(%sum.next)\n"
    "}\n";

CompileOptions keeping() {
  CompileOptions options;
  options.set("state", "sum=sum.next");
  options.set("threads", 1);
  return options;
}

Model counter() { return Model(Graph::parse(kCounter), keeping()); }

Tensor ones() {
  const float values[] = {1.0F, 1.0F, 1.0F, 1.0F};
  return Tensor::of(PYC_DTYPE_F32, {4}, std::span<const float>(values));
}

TEST(States, AreKeptBetweenRuns) {
  Model model = counter();
  ASSERT_EQ(model.input_count(), 1u);
  ASSERT_EQ(model.output_count(), 1u);
  ASSERT_EQ(model.state_count(), 1u);
  EXPECT_STREQ(model.state(0).name, "sum");
  EXPECT_EQ(model.state(0).bytes, 16);
  EXPECT_EQ(model.state(0).kind, PYC_VALUE_INPUT);
  auto info = sized<pyc_value_info>();
  const char* output = nullptr;
  ASSERT_EQ(pyc_model_state(model.get(), 0, &info, &output, nullptr), PYC_STATUS_OK);
  EXPECT_STREQ(output, "sum.next");
  EXPECT_EQ(model.memory().state_bytes, 64);
  for (int run = 1; run <= 3; ++run) {
    EXPECT_EQ(model(ones())[0].elements<float>()[3], static_cast<float>(-run));
  }
  const Tensor sum(PYC_DTYPE_F32, {4});
  model.get_state(0, sum.view());
  EXPECT_EQ(sum.elements<float>()[0], 3.0F);
  model.set_state(0, ones().view());
  EXPECT_EQ(model(ones())[0].elements<float>()[0], -2.0F);
  model.clear_state(0);
  EXPECT_EQ(model(ones())[0].elements<float>()[0], -1.0F);
}

TEST(States, AreCountedByRuns) {
  const Graph graph = Graph::parse(
      "graph @sum(%x: f32[4], %sum: f32[4]) -> (%sum.next) { %sum.next = add(%sum, %x) }");
  const Tensor x = ones();
  const pyc_tensor_view in = x.view();
  const auto copied = [&](const CompileOptions& options) {
    return Model(graph, options).run(std::span(&in, 1), std::span<const pyc_tensor_view>());
  };
  EXPECT_EQ(copied(keeping()).copied_bytes, 0);
  CompileOptions apart = keeping();
  apart.set("reuse", false);
  EXPECT_EQ(copied(apart).copied_bytes, 16);
}

TEST(States, AModelWithoutHasNone) {
  const Model model = small_model();
  EXPECT_EQ(model.state_count(), 0u);
  EXPECT_EQ(pyc_model_state_count(nullptr), 0u);
  EXPECT_EQ(model.memory().state_bytes, 0);
  const Refusal none =
      refusal([&](pyc_error** e) { return pyc_model_state_clear(model.get(), 0, e); });
  EXPECT_EQ(none.status, PYC_STATUS_INVALID_ARGUMENT);
}

TEST(States, WrongCallsAreRefused) {
  const Model model = counter();
  const Tensor wrong(PYC_DTYPE_I32, {4});
  const pyc_tensor_view view = wrong.view();
  const Refusal dtype =
      refusal([&](pyc_error** e) { return pyc_model_state_set(model.get(), 0, &view, e); });
  EXPECT_EQ(dtype.status, PYC_STATUS_DTYPE_MISMATCH);
  EXPECT_EQ(dtype.node, "sum");
  EXPECT_EQ(
      refusal([&](pyc_error** e) { return pyc_model_state_get(model.get(), 0, &view, e); }).status,
      PYC_STATUS_DTYPE_MISMATCH);
  EXPECT_EQ(
      refusal([&](pyc_error** e) { return pyc_model_state_set(model.get(), 1, &view, e); }).status,
      PYC_STATUS_INVALID_ARGUMENT);
  for (const pyc_status status : {pyc_model_state_set(nullptr, 0, &view, nullptr),
                                  pyc_model_state_get(nullptr, 0, &view, nullptr),
                                  pyc_model_state_set(model.get(), 0, nullptr, nullptr),
                                  pyc_model_state_get(model.get(), 0, nullptr, nullptr),
                                  pyc_model_state_clear(nullptr, 0, nullptr),
                                  pyc_model_state(nullptr, 0, nullptr, nullptr, nullptr)}) {
    EXPECT_EQ(status, PYC_STATUS_NULL_POINTER);
  }
}

// A step beyond the cache fails half way.
TEST(States, AreVoidAfterAFailedRun) {
  const Graph graph = Graph::parse(
      "graph @cache(%x: f32[1,1,4], %at: i64[1], %past: f32[1,8,4]) -> (%next) {\n"
      "  %next = tensor_scatter(%past, %x, %at) {axis=1, mode=\"linear\"}\n"
      "}\n");
  CompileOptions options;
  options.set("state", "past=next");
  const Model model(graph, options);
  const Tensor x(PYC_DTYPE_F32, {1, 1, 4});
  int64_t place = 8;
  const Shape one = {1};
  auto at = sized<pyc_tensor_view>();
  at.data = &place;
  at.shape = one.data();
  at.rank = 1;
  at.bytes = 8;
  at.dtype = PYC_DTYPE_I64;
  const pyc_tensor_view in[] = {x.view(), at};
  const auto run = [&](pyc_error** e) {
    return pyc_run_model(model.get(), in, 2, nullptr, 0, nullptr, e);
  };
  EXPECT_EQ(run(nullptr), PYC_STATUS_RUNTIME_FAILED);
  place = 7;
  const Refusal refused = refusal(run);
  EXPECT_EQ(refused.status, PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(refused.message.find("state 'past' is void since a run failed"), std::string::npos)
      << refused.message;
  ASSERT_EQ(pyc_model_state_clear(model.get(), 0, nullptr), PYC_STATUS_OK);
  EXPECT_EQ(run(nullptr), PYC_STATUS_OK);
}

// A model whose shapes come with a run is several programs, which hand values on.
TEST(States, OpenModelsAreRefusedByName) {
  const std::string text =
      "open graph @open(%x: f32[N,4], %sum: f32[N,4]) -> (%next) {\n"
      "  %next = onnx.Add[14](%x, %sum)\n"
      "}\n";
  CompileOptions options;
  options.set("state", "sum=next");
  pyc_model* model = nullptr;
  const Refusal refused = refusal([&](pyc_error** e) {
    return pyc_compile_model_bytes(text.data(), text.size(), options.get(), &model, e);
  });
  EXPECT_EQ(refused.status, PYC_STATUS_UNSUPPORTED);
  EXPECT_EQ(refused.message.substr(0, 73),
            "state: only a model that is one program keeps one: input 'x' is f32[N,4]:");
  // With the shape chosen it is one program.
  options.set("dim", "N=2");
  ASSERT_EQ(pyc_compile_model_bytes(text.data(), text.size(), options.get(), &model, nullptr),
            PYC_STATUS_OK);
  EXPECT_EQ(pyc_model_state_count(model), 1u);
  EXPECT_EQ(pyc_model_input_count(model), 1u);
  EXPECT_EQ(pyc_model_output_count(model), 0u);
  EXPECT_EQ(pyc_model_is_open(model), 0);
  pyc_destroy_model(model);
}

}  // namespace
}  // namespace pyc::test
