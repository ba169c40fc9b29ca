// Tensors of any order, place and version of the struct, through the C ABI.

#include <gtest/gtest.h>

#include <functional>

#include "capi/calls.h"
#include "onnx/model_writer.h"

namespace pyc::test {
namespace {

namespace w = onnx::test;

struct Memory {
  std::vector<float> data;
  Shape shape;
  Shape strides;

  pyc_tensor_view view() {
    auto out = sized<pyc_tensor_view>();
    out.data = data.data();
    out.bytes = static_cast<int64_t>(data.size() * sizeof(float));
    out.shape = shape.data();
    out.strides = strides.empty() ? nullptr : strides.data();
    out.rank = static_cast<int64_t>(shape.size());
    out.dtype = PYC_DTYPE_F32;
    return out;
  }
};

// x of small_model, as rows and as columns.
Memory row_major() { return {{1, 2, 3, 4, 5, 6}, {2, 3}, {}}; }
Memory column_major() { return {{1, 4, 2, 5, 3, 6}, {2, 3}, {1, 2}}; }
Memory result(Shape strides = {}) { return {{-1, -1, -1, -1}, {2, 2}, std::move(strides)}; }

TEST(Views, StridesGiveTheSameResultsAndAreCounted) {
  Model model = small_model();
  Memory x = row_major();
  Memory y = result();
  const pyc_tensor_view in = x.view();
  const pyc_tensor_view out = y.view();
  pyc_run_stats stats = model.run({&in, 1}, {&out, 1});
  EXPECT_EQ(stats.staged_views, 0);
  EXPECT_EQ(model.memory().staging_bytes, 0);

  Memory turned = column_major();
  Memory columns = result({1, 2});
  const pyc_tensor_view turned_in = turned.view();
  const pyc_tensor_view turned_out = columns.view();
  stats = model.run({&turned_in, 1}, {&turned_out, 1});
  EXPECT_EQ(columns.data, (std::vector<float>{y.data[0], y.data[2], y.data[1], y.data[3]}));
  EXPECT_EQ(stats.staged_views, 2);
  EXPECT_EQ(stats.staged_bytes, 24 + 16);
  EXPECT_EQ(model.memory().staging_bytes, 64 + 64);
  EXPECT_EQ(model.stats().failed_runs, 0);
}

TEST(Views, StrictModelsRefuseByName) {
  Model model = small_model(CompileOptions().set("strict_views", true));
  Memory x = column_major();
  Memory y = result();
  const pyc_tensor_view in = x.view();
  const pyc_tensor_view out = y.view();
  const Refusal r = refusal(
      [&](pyc_error** e) { return pyc_run_model(model.get(), &in, 1, &out, 1, nullptr, e); });
  EXPECT_EQ(r.status, PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(r.node, "x");
  EXPECT_EQ(r.message,
            "input 'x': expected row-major elements (strict_views) for f32[2,3], found dims [2,3] "
            "with strides [1,2]");
  pyc_results* results = nullptr;
  EXPECT_EQ(pyc_run_model_dynamic(model.get(), &in, 1, &results, nullptr, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
  Memory rows = row_major();
  const pyc_tensor_view plain = rows.view();
  EXPECT_EQ(pyc_run_model(model.get(), &plain, 1, &out, 1, nullptr, nullptr), PYC_STATUS_OK);
}

TEST(Views, BadMemoryIsRefusedAndTheModelStaysUsable) {
  Model model = small_model();
  Memory x = row_major();
  Memory y = result();
  struct Case {
    const char* name;
    std::function<void(pyc_tensor_view&, pyc_tensor_view&)> spoil;
    pyc_status status;
  };
  const Shape beyond = {4, 1};
  const Shape same = {0, 1};
  const Shape huge = {INT64_MAX, 1};
  const Case cases[] = {
      {"Cuda", [](auto& in, auto&) { in.device_type = PYC_DEVICE_CUDA; }, PYC_STATUS_UNSUPPORTED},
      {"SecondHost", [](auto& in, auto&) { in.device_id = 3; }, PYC_STATUS_UNSUPPORTED},
      {"OutputElsewhere", [](auto&, auto& out) { out.device_type = 10; }, PYC_STATUS_UNSUPPORTED},
      {"Beyond", [&](auto& in, auto&) { in.strides = beyond.data(); }, PYC_STATUS_SIZE_MISMATCH},
      {"Overflow", [&](auto& in, auto&) { in.strides = huge.data(); }, PYC_STATUS_SIZE_MISMATCH},
      {"Before", [](auto& in, auto&) { in.byte_offset = -4; }, PYC_STATUS_SIZE_MISMATCH},
      {"Offset", [](auto& in, auto&) { in.byte_offset = INT64_MAX; }, PYC_STATUS_SIZE_MISMATCH},
      {"NegativeBytes", [](auto& in, auto&) { in.bytes = INT64_MIN; }, PYC_STATUS_SIZE_MISMATCH},
      {"SelfOverlap", [&](auto&, auto& out) { out.strides = same.data(); },
       PYC_STATUS_INVALID_ARGUMENT},
      {"Overlap", [](auto& in, auto& out) { out.data = in.data; }, PYC_STATUS_INVALID_ARGUMENT},
      {"NoSize", [](auto& in, auto&) { in.struct_size = 0; }, PYC_STATUS_INVALID_ARGUMENT},
      {"HugeSize", [](auto& in, auto&) { in.struct_size = size_t{1} << 40; },
       PYC_STATUS_INVALID_ARGUMENT},
      {"NoData", [](auto& in, auto&) { in.data = nullptr; }, PYC_STATUS_NULL_POINTER},
      {"NoShape", [](auto& in, auto&) { in.shape = nullptr; }, PYC_STATUS_NULL_POINTER},
  };
  const std::vector<float> untouched = y.data;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    pyc_tensor_view in = x.view();
    pyc_tensor_view out = y.view();
    c.spoil(in, out);
    const Refusal r = refusal(
        [&](pyc_error** e) { return pyc_run_model(model.get(), &in, 1, &out, 1, nullptr, e); });
    EXPECT_EQ(r.status, c.status) << r.message;
    EXPECT_EQ(y.data, untouched);
  }
  const pyc_tensor_view in = x.view();
  const pyc_tensor_view out = y.view();
  EXPECT_EQ(pyc_run_model(model.get(), &in, 1, &out, 1, nullptr, nullptr), PYC_STATUS_OK);
}

// A later version of the struct is longer: entries lie struct_size apart.
TEST(Views, ArraysOfLaterVersionsAreRead) {
  const Graph graph = Graph::parse(
      "graph @g(%a: f32[2], %b: f32[2]) -> (%y) {\n"
      "  %y = sub(%a, %b)\n"
      "}\n");
  Model model(graph);
  struct Later {
    pyc_tensor_view known;
    int64_t added;
  };
  Memory a{{5, 7}, {2}, {}};
  Memory b{{1, 2}, {2}, {}};
  Memory y{{0, 0}, {2}, {}};
  Later inputs[] = {{a.view(), 0}, {b.view(), 0}};
  for (Later& in : inputs) in.known.struct_size = sizeof(Later);
  const pyc_tensor_view out = y.view();
  const auto run = [&] {
    return pyc_run_model(model.get(), &inputs[0].known, 2, &out, 1, nullptr, nullptr);
  };
  EXPECT_EQ(run(), PYC_STATUS_OK);
  EXPECT_EQ(y.data, (std::vector<float>{4, 5}));
  inputs[1].added = 1;
  EXPECT_EQ(run(), PYC_STATUS_UNKNOWN_OPTION);
  inputs[1].added = 0;
  inputs[1].known.struct_size = sizeof(pyc_tensor_view);
  EXPECT_EQ(run(), PYC_STATUS_INVALID_ARGUMENT) << "all have the size of the first";
}

TEST(Views, TensorFunctionsTakeAnyOrder) {
  Memory rows = row_major();
  Memory columns = column_major();
  const pyc_tensor_view a = rows.view();
  const pyc_tensor_view b = columns.view();
  const auto digest = [](const pyc_tensor_view& view) {
    return take_text([&](char** text, pyc_error** e) { return pyc_tensor_digest(&view, text, e); });
  };
  EXPECT_EQ(digest(a), digest(b));
  std::vector<double> numbers(6);
  check([&](pyc_error** e) { return pyc_tensor_read_f64(&b, 0, 6, numbers.data(), e); });
  EXPECT_EQ(numbers, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(digest(AnyValue(b).tensor()), digest(a));
  check([&](pyc_error** e) { return pyc_tensor_fill_random(&a, 5, e); });
  EXPECT_NE(digest(a), digest(b));
  check([&](pyc_error** e) { return pyc_tensor_fill_random(&b, 5, e); });
  EXPECT_EQ(digest(a), digest(b));
  const Shape same = {0, 1};
  pyc_tensor_view twice = b;
  twice.strides = same.data();
  EXPECT_EQ(pyc_tensor_fill_random(&twice, 5, nullptr), PYC_STATUS_INVALID_ARGUMENT);
  pyc_tensor_view unsized_view{};
  const Tensor tensor(PYC_DTYPE_F32, {2});
  EXPECT_EQ(pyc_result_tensor(AnyValue(tensor).get(), &unsized_view, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
}

// An open model copies what is not plain, counts it, and writes to strided outputs.
TEST(Views, OpenModelsTakeStridesToo) {
  const w::Bytes bytes =
      w::model({.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("n"), w::fixed(3)}))},
                .outputs = {w::unshaped("y", w::kF32)},
                .nodes = {w::node("Relu", {"x"}, {"y"}, {}, "relu")}});
  pyc_model* model = nullptr;
  check([&](pyc_error** e) {
    return pyc_compile_model_bytes(bytes.data(), bytes.size(), nullptr, &model, e);
  });
  ASSERT_EQ(pyc_model_is_open(model), 1);
  Memory x = column_major();
  Memory y{std::vector<float>(6), {2, 3}, {1, 2}};
  const pyc_tensor_view in = x.view();
  const pyc_tensor_view out = y.view();
  auto stats = sized<pyc_run_stats>();
  check([&](pyc_error** e) { return pyc_run_model(model, &in, 1, &out, 1, &stats, e); });
  EXPECT_EQ(y.data, x.data);
  EXPECT_EQ(stats.staged_views, 2);
  EXPECT_EQ(stats.staged_bytes, 48);
  pyc_tensor_view elsewhere = in;
  elsewhere.device_type = PYC_DEVICE_CUDA;
  const Refusal r = refusal(
      [&](pyc_error** e) { return pyc_run_model(model, &elsewhere, 1, &out, 1, nullptr, e); });
  EXPECT_EQ(r.status, PYC_STATUS_UNSUPPORTED);
  EXPECT_EQ(r.node, "x");
  pyc_destroy_model(model);
}

}  // namespace
}  // namespace pyc::test
