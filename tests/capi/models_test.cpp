// Models through the C ABI: life, runs, refusals, what they tell.

#include <cstddef>
#include <thread>

#include "capi/calls.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

pyc_tensor_view view(void* data, const Shape& shape, int64_t bytes,
                     pyc_dtype dtype = PYC_DTYPE_F32) {
  auto out = sized<pyc_tensor_view>();
  out.data = data;
  out.shape = shape.data();
  out.rank = static_cast<int64_t>(shape.size());
  out.bytes = bytes;
  out.dtype = dtype;
  return out;
}

TEST(Models, CompileFromGraphBytesAndFileGivesTheSameResult) {
  const std::string text = small_graph().print();
  const TempFolder folder;
  const std::string path = folder.file("model.ir");
  {
    FILE* file = fopen(path.c_str(), "w");
    fwrite(text.data(), 1, text.size(), file);
    fclose(file);
  }
  pyc_model* from_bytes = nullptr;
  ASSERT_EQ(pyc_compile_model_bytes(text.data(), text.size(), nullptr, &from_bytes, nullptr),
            PYC_STATUS_OK);
  const Tensor x = Tensor::random(PYC_DTYPE_F32, {2, 3}, 5);
  const Tensor y(PYC_DTYPE_F32, {2, 2});
  const pyc_tensor_view in = x.view();
  const pyc_tensor_view out = y.view();
  ASSERT_EQ(pyc_run_model(from_bytes, &in, 1, &out, 1, nullptr, nullptr), PYC_STATUS_OK);
  pyc_destroy_model(from_bytes);

  Model from_graph = small_model();
  Model from_file = Model::load(path);
  EXPECT_EQ(from_graph(Tensor::random(PYC_DTYPE_F32, {2, 3}, 5))[0].digest(), y.digest());
  EXPECT_EQ(from_file(Tensor::random(PYC_DTYPE_F32, {2, 3}, 5))[0].digest(), y.digest());
}

TEST(Models, DestroyingTwiceOrNothingIsHarmless) {
  pyc_model* model = nullptr;
  const Graph graph = small_graph();
  ASSERT_EQ(pyc_compile_model(graph.get(), nullptr, &model, nullptr), PYC_STATUS_OK);
  pyc_destroy_model(model);
  pyc_destroy_model(model);
  pyc_destroy_model(nullptr);
}

TEST(Models, InputsAndOutputsAreDescribed) {
  const Model model = small_model();
  ASSERT_EQ(model.input_count(), 1u);
  ASSERT_EQ(model.output_count(), 1u);
  const pyc_value_info x = model.input(0);
  EXPECT_STREQ(x.name, "x");
  EXPECT_EQ(x.dtype, PYC_DTYPE_F32);
  EXPECT_EQ(Shape(x.shape, x.shape + x.rank), (Shape{2, 3}));
  EXPECT_EQ(x.bytes, 24);
  EXPECT_STREQ(model.output(0).name, "y");
  EXPECT_EQ(refusal([&](pyc_error** e) {
              auto info = sized<pyc_value_info>();
              return pyc_model_input(model.get(), 1, &info, e);
            }).status,
            PYC_STATUS_INVALID_ARGUMENT);
}

TEST(Models, WrongTensorsAreRefusedByNameAndCounted) {
  Model model = small_model();
  float x[6] = {};
  float y[4] = {};
  const Shape in_shape = {2, 3};
  const Shape out_shape = {2, 2};
  const auto run = [&](const pyc_tensor_view& in, const pyc_tensor_view& out) {
    return refusal(
        [&](pyc_error** e) { return pyc_run_model(model.get(), &in, 1, &out, 1, nullptr, e); });
  };
  const pyc_tensor_view good_in = view(x, in_shape, sizeof x);
  const pyc_tensor_view good_out = view(y, out_shape, sizeof y);
  EXPECT_EQ(run(good_in, good_out).status, PYC_STATUS_OK);

  EXPECT_EQ(run(view(nullptr, in_shape, sizeof x), good_out).status, PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(run(view(x, in_shape, sizeof x, PYC_DTYPE_I32), good_out).status,
            PYC_STATUS_DTYPE_MISMATCH);
  EXPECT_EQ(run(view(x, in_shape, sizeof x, 99), good_out).status, PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(run(view(x, {6}, sizeof x), good_out).status, PYC_STATUS_RANK_MISMATCH);
  EXPECT_EQ(run(view(x, {3, 2}, sizeof x), good_out).status, PYC_STATUS_SHAPE_MISMATCH);
  EXPECT_EQ(run(view(x, in_shape, 20), good_out).status, PYC_STATUS_SIZE_MISMATCH);
  EXPECT_EQ(run(good_in, view(x, out_shape, sizeof y)).status, PYC_STATUS_INVALID_ARGUMENT);
  pyc_tensor_view elsewhere = good_in;
  elsewhere.device_type = PYC_DEVICE_CUDA;
  const Refusal unreachable = run(elsewhere, good_out);
  EXPECT_EQ(unreachable.status, PYC_STATUS_UNSUPPORTED);
  EXPECT_EQ(unreachable.node, "x");

  const pyc_model_stats stats = model.stats();
  EXPECT_EQ(stats.runs, 16);  // each call above ran twice; one was refused before the gateway
  EXPECT_EQ(stats.guard_miss_count, 14);
  EXPECT_EQ(stats.failed_runs, 14);
  EXPECT_EQ(stats.fallback_count, 0);

  pyc_refusals* refusals = nullptr;
  ASSERT_EQ(pyc_model_get_refusals(model.get(), &refusals, nullptr), PYC_STATUS_OK);
  ASSERT_EQ(pyc_refusals_count(refusals), 14u);
  auto decision = sized<pyc_decision>();
  ASSERT_EQ(pyc_refusals_get(refusals, 0, &decision, nullptr), PYC_STATUS_OK);
  EXPECT_STREQ(decision.reason, "null_pointer");
  EXPECT_EQ(pyc_refusals_get(refusals, 14, &decision, nullptr), PYC_STATUS_INVALID_ARGUMENT);
  pyc_refusals_destroy(refusals);
}

TEST(Models, NullPointersAreRefused) {
  Model model = small_model();
  const Graph graph = small_graph();
  pyc_model* made = nullptr;
  EXPECT_EQ(pyc_compile_model(nullptr, nullptr, &made, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_model(graph.get(), nullptr, nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_model_bytes(nullptr, 3, nullptr, &made, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_model_file(nullptr, nullptr, &made, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(pyc_run_model(nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr),
            PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_run_model(model.get(), nullptr, 1, nullptr, 1, nullptr, nullptr),
            PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_run_model(model.get(), nullptr, 0, nullptr, 0, nullptr, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
  auto shapeless = sized<pyc_tensor_view>();
  shapeless.rank = 2;
  EXPECT_EQ(pyc_run_model(model.get(), &shapeless, 1, &shapeless, 1, nullptr, nullptr),
            PYC_STATUS_NULL_POINTER);
  shapeless.rank = -1;
  EXPECT_EQ(pyc_run_model(model.get(), &shapeless, 1, &shapeless, 1, nullptr, nullptr),
            PYC_STATUS_RANK_MISMATCH);
  EXPECT_EQ(pyc_model_get_stats(model.get(), nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_model_last_decision_log(model.get(), nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_model_input_count(nullptr), 0u);
  EXPECT_EQ(pyc_model_decision_count(nullptr), 0u);
}

TEST(Models, StructSizesOfOtherVersionsAreHandled) {
  struct LaterStats {
    pyc_model_stats known;
    int64_t added;
  } stats{};
  stats.known.struct_size = sizeof stats;
  stats.added = 7;
  const Model model = small_model();
  ASSERT_EQ(pyc_model_get_stats(model.get(), &stats.known, nullptr), PYC_STATUS_OK);
  EXPECT_EQ(stats.added, 0);
  EXPECT_EQ(stats.known.struct_size, sizeof stats);
  auto run_stats = sized<pyc_run_stats>();
  run_stats.struct_size = 8;
  EXPECT_EQ(pyc_run_model(model.get(), nullptr, 0, nullptr, 0, &run_stats, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
}

TEST(Models, StatsMemoryStepsAndKernelsAreFilled) {
  CompileOptions options;
  options.set("threads", 1);
  Model model = small_model(options);
  const Tensor x = Tensor::random(PYC_DTYPE_F32, {2, 3}, 1);
  const Tensor y(PYC_DTYPE_F32, {2, 2});
  const pyc_tensor_view in = x.view();
  const pyc_tensor_view out = y.view();
  const pyc_run_stats stats = model.run({&in, 1}, {&out, 1});
  EXPECT_GT(stats.wall_ns, 0);
  EXPECT_EQ(stats.steps, static_cast<int64_t>(pyc_model_step_count(model.get())));
  EXPECT_EQ(stats.allocations, 0);
  EXPECT_EQ(model.stats().runs, 1);
  const pyc_model_stats compiled = model.stats();
  EXPECT_GT(compiled.compile_ns, 0);
  if (compiled.cache_hit == 0) {
    EXPECT_GT(compiled.passes_ns, 0);
    EXPECT_GT(compiled.slowest_kernel_ns, 0);
    EXPECT_GE(compiled.kernels, compiled.distinct_kernels);
    EXPECT_GT(compiled.distinct_kernels, 0);
  } else {
    EXPECT_EQ(compiled.kernels, 0);
  }

  const pyc_memory_report memory = model.memory();
  EXPECT_EQ(memory.input_bytes, 24);
  EXPECT_EQ(memory.output_bytes, 16);
  EXPECT_GT(memory.parameter_bytes, 0);
  EXPECT_EQ(memory.measured_arena_bytes, memory.arena_bytes + memory.scratch_bytes);
  EXPECT_EQ(memory.peak_bytes, memory.input_bytes + memory.output_bytes + memory.parameter_bytes +
                                   memory.arena_bytes + memory.scratch_bytes);

  auto step = sized<pyc_step_info>();
  check([&](pyc_error** e) { return pyc_model_step(model.get(), 0, &step, e); });
  EXPECT_GT(step.flops, 0.0);
  EXPECT_GT(step.bytes_moved, 0);
  std::vector<int64_t> ns(pyc_model_step_count(model.get()));
  check([&](pyc_error** e) {
    return pyc_profile_model(model.get(), &in, 1, &out, 1, ns.data(), ns.size(), e);
  });
  EXPECT_GT(ns[0], 0);
  EXPECT_EQ(pyc_profile_model(model.get(), &in, 1, &out, 1, ns.data(), ns.size() + 1, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);

  int chosen = 0;
  for (size_t i = 0; i < pyc_model_kernel_count(model.get()); ++i) {
    auto kernel = sized<pyc_kernel_info>();
    check([&](pyc_error** e) { return pyc_model_kernel(model.get(), i, &kernel, e); });
    EXPECT_STREQ(kernel.group, "g0");
    chosen += kernel.chosen;
  }
  EXPECT_EQ(chosen, 1);
}

TEST(Models, DecisionsAreTheSameOnReplay) {
  CompileOptions options;
  options.set("cache", false);
  const Model a = small_model(options);
  const Model b = small_model(options);
  ASSERT_GT(pyc_model_decision_count(a.get()), 0u);
  EXPECT_EQ(a.decision_log(), b.decision_log());
  EXPECT_NE(a.decision_log().find("\"fingerprint\""), std::string::npos);
  auto decision = sized<pyc_decision>();
  ASSERT_EQ(pyc_model_decision(a.get(), 0, &decision, nullptr), PYC_STATUS_OK);
  EXPECT_STREQ(decision.what, "determinism");
  auto alternative = sized<pyc_alternative>();
  EXPECT_EQ(pyc_model_alternative(a.get(), 0, decision.alternative_count, &alternative, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
}

TEST(Models, TheCacheOfTheProcessIsCounted) {
  pyc_cache_clear();
  auto before = sized<pyc_cache_stats>();
  ASSERT_EQ(pyc_cache_get_stats(&before, nullptr), PYC_STATUS_OK);
  EXPECT_EQ(before.entries, 0);
  EXPECT_EQ(small_model().stats().cache_hit, 0);
  EXPECT_EQ(small_model().stats().cache_hit, 1);
  auto after = sized<pyc_cache_stats>();
  ASSERT_EQ(pyc_cache_get_stats(&after, nullptr), PYC_STATUS_OK);
  EXPECT_EQ(after.entries, 1);
  EXPECT_EQ(after.hits, before.hits + 1);
  EXPECT_EQ(after.misses, before.misses + 1);
  EXPECT_GT(after.capacity, 1);
}

TEST(Models, EightThreadsCompileAndRunModelsOfTheirOwnAndOneTogether) {
  CompileOptions options;
  options.set("threads", 2);
  Model shared = small_model(options);
  const std::string expected = shared(Tensor::random(PYC_DTYPE_F32, {2, 3}, 9))[0].digest();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      CompileOptions own = options;
      own.set("device", t % 2 == 0 ? "cpu" : "reference");
      if (t % 4 == 0) own.set("cache", false);
      for (int i = 0; i < 5; ++i) {
        Model mine = small_model(own);
        const Tensor x = Tensor::random(PYC_DTYPE_F32, {2, 3}, 9);
        if (mine.run({&x, 1})[0].digest() != expected) ++wrong;
        if (shared.run({&x, 1})[0].digest() != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace pyc::test
