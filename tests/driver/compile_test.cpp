// Compiling and running through the driver: what is refused, what is explained, what is shared.

#include <gtest/gtest.h>

#include <thread>

#include "driver/cache.h"
#include "driver/compile.h"
#include "driver/seeded_run.h"
#include "ops/registry.h"

namespace pyc::driver {
namespace {

constexpr std::string_view kMlp = R"(graph @mlp(%x: f32[8,64]) -> (%y) {
  %w = const f32[64,32] random(seed=1, lo=-0.1, hi=0.1)
  %b = const f32[32] splat(0.5)
  %h = matmul(%x, %w)
  %a = add(%h, %b)
  %r = relu(%a)
  %y = softmax(%r) {axis=-1}
}
)";

std::unique_ptr<runtime::Model> must_compile(std::string_view text, CompileOptions options = {}) {
  auto graph = parse_model(text);
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  auto model = compile(std::move(*graph), options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return std::move(*model);
}

Status compile_status(std::string_view text, CompileOptions options = {}) {
  auto graph = parse_model(text);
  if (!graph.ok()) return graph.status();
  auto model = compile(std::move(*graph), options);
  return model.ok() ? Status() : model.status();
}

std::string run_digest(runtime::Model& model) {
  auto data = SeededRun::create(model, 1);
  EXPECT_TRUE(data.ok());
  const Status status = model.run(data->inputs(), data->outputs());
  EXPECT_TRUE(status.ok()) << status.to_string();
  return data->digest(0).hex();
}

TEST(Compile, BudgetOfOneByteIsRefusedByName) {
  CompileOptions options;
  options.memory_budget = 1;
  const Status status = compile_status(kMlp, options);
  EXPECT_EQ(status.code(), Code::kBudgetExceeded);
  EXPECT_NE(status.message().find("budget"), std::string::npos) << status.message();
  EXPECT_TRUE(compile_status(kMlp).ok()) << "the next compile is not affected";
}

TEST(Compile, BudgetOfThePeakIsKeptAndOneByteLessIsNot) {
  const auto model = must_compile(kMlp);
  CompileOptions options;
  options.memory_budget = model->memory().peak_bytes;
  EXPECT_TRUE(compile_status(kMlp, options).ok());
  --options.memory_budget;
  EXPECT_EQ(compile_status(kMlp, options).code(), Code::kBudgetExceeded);
}

TEST(Compile, UnknownDeviceAndBadOptionsAreRefused) {
  CompileOptions options;
  options.device = "gpu9";
  EXPECT_EQ(compile_status(kMlp, options).code(), Code::kUnknownOption);
  options.device = "cpu";
  options.lanes = 5;
  EXPECT_EQ(compile_status(kMlp, options).code(), Code::kInvalidArgument);
  options.lanes = 0;
  options.threads = -1;
  EXPECT_EQ(compile_status(kMlp, options).code(), Code::kInvalidArgument);
}

TEST(Compile, MemoryReportEqualsWhatWasAllocated) {
  for (const char* device : {"cpu", "reference"}) {
    CompileOptions options;
    options.device = device;
    const auto model = must_compile(kMlp, options);
    const runtime::MemoryReport& m = model->memory();
    EXPECT_EQ(m.measured_arena_bytes, m.arena_bytes + m.scratch_bytes) << device;
    EXPECT_GT(m.peak_bytes, 0);
    int64_t io = 0;
    for (const auto& spec : model->inputs()) io += spec.bytes;
    for (const auto& spec : model->outputs()) io += spec.bytes;
    EXPECT_GE(m.peak_bytes, io + m.arena_bytes + m.scratch_bytes);
  }
}

TEST(Compile, EveryContractionHasAtLeastTwoCandidatesWithCost) {
  const auto model = must_compile(kMlp);
  int contractions = 0;
  for (const Decision& d : model->decisions()) {
    int with_cost = 0;
    bool product = false;
    for (const Alternative& a : d.alternatives) {
      with_cost += a.rejected.empty() && a.cost_ns > 0;
      product |= a.name.starts_with("f32_matmul");
    }
    if (!product) continue;
    ++contractions;
    EXPECT_GE(with_cost, 2) << d.to_string();
  }
  EXPECT_EQ(contractions, 1);
}

TEST(Compile, DecisionLogIsIdenticalOnReplay) {
  CompileOptions options;
  options.cache = false;
  const auto first = must_compile(kMlp, options);
  const auto second = must_compile(kMlp, options);
  ASSERT_EQ(first->decisions().size(), second->decisions().size());
  for (size_t i = 0; i < first->decisions().size(); ++i) {
    EXPECT_EQ(first->decisions()[i].to_string(), second->decisions()[i].to_string());
  }
}

TEST(Compile, SecondCompileComesFromTheCacheAndChangesNothing) {
  cache_clear();
  const auto cold = must_compile(kMlp);
  EXPECT_FALSE(cold->stats().cache_hit);
  const auto warm = must_compile(kMlp);
  EXPECT_TRUE(warm->stats().cache_hit);
  EXPECT_EQ(run_digest(*cold), run_digest(*warm));
  CompileOptions other;
  other.threads = 3;
  EXPECT_FALSE(must_compile(kMlp, other)->stats().cache_hit);
  std::string changed(kMlp);
  changed.replace(changed.find("splat(0.5)"), 10, "splat(0.6)");
  const auto different = must_compile(changed);
  EXPECT_FALSE(different->stats().cache_hit);
  EXPECT_NE(run_digest(*different), run_digest(*cold));
}

TEST(Compile, RunsOfOneModelOnManyThreadsAgree) {
  const auto model = must_compile(kMlp);
  const std::string expected = run_digest(*model);
  std::vector<std::string> found(8);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < found.size(); ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) found[t] = run_digest(*model);
      });
    }
  }
  for (const std::string& digest : found) EXPECT_EQ(digest, expected);
}

TEST(Compile, SoftmaxAndLayerNormAreOneKernelEach) {
  constexpr std::string_view text = R"(graph @norms(%x: f32[4,128]) -> (%y, %z) {
  %g = const f32[128] splat(1.5)
  %b = const f32[128] splat(0.5)
  %y = softmax(%x) {axis=-1}
  %z = layer_norm(%x, %g, %b)
}
)";
  const auto model = must_compile(text);
  EXPECT_EQ(model->program().steps.size(), 2u);
}

TEST(Compile, ElementwiseChainIsOneKernel) {
  constexpr std::string_view text = R"(graph @chain(%x: f32[3,50], %c: f32[50]) -> (%y) {
  %a = mul(%x, %x)
  %b = add(%a, %c)
  %d = exp(%b)
  %e = add(%d, %a)
  %f = transpose(%e) {perm=[1,0]}
  %y = relu(%f)
}
)";
  const auto model = must_compile(text);
  EXPECT_LE(model->program().steps.size(), 2u);
}

TEST(Compile, InputsAndConstantsCanBeOutputs) {
  constexpr std::string_view text = R"(graph @io(%x: f32[3]) -> (%x, %c, %y, %y, %v) {
  %c = const f32[2] dense(1.5, -2)
  %y = relu(%x)
  %v = reshape(%y) {shape=[3,1]}
}
)";
  const auto model = must_compile(text);
  auto data = SeededRun::create(*model, 1);
  ASSERT_TRUE(model->run(data->inputs(), data->outputs()).ok());
  EXPECT_EQ(data->digest(2).hex(), data->digest(3).hex());
  EXPECT_EQ(data->digest(2).hex(), data->digest(4).hex());
  const auto* x = static_cast<const float*>(data->inputs()[0].data);
  const auto* copy = static_cast<const float*>(data->outputs()[0].data);
  EXPECT_EQ(std::vector<float>(x, x + 3), std::vector<float>(copy, copy + 3));
  EXPECT_EQ(static_cast<const float*>(data->outputs()[1].data)[1], -2.0f);
}

TEST(Compile, GatherOutOfRangeFailsTheRunAndTheModelStaysUsable) {
  constexpr std::string_view text = R"(graph @g(%i: i64[2]) -> (%y) {
  %t = const f32[4,3] random(seed=1, lo=-1, hi=1)
  %y = gather(%t, %i) {axis=0}
}
)";
  for (const char* device : {"cpu", "reference"}) {
    CompileOptions options;
    options.device = device;
    const auto model = must_compile(text, options);
    int64_t indices[2] = {1, 4};
    float out[6];
    const runtime::TensorView in{indices, DType::kI64, model->inputs()[0].shape, 16};
    const runtime::TensorView result{out, DType::kF32, model->outputs()[0].shape, 24};
    const Status bad = model->run({&in, 1}, {&result, 1});
    EXPECT_EQ(bad.code(), Code::kRuntimeFailed) << device;
    EXPECT_NE(bad.message().find("index out of range"), std::string::npos) << bad.message();
    indices[1] = -1;
    EXPECT_TRUE(model->run({&in, 1}, {&result, 1}).ok()) << device;
  }
}

TEST(Compile, EmptyTensorsRun) {
  constexpr std::string_view text =
      R"(graph @e(%x: f32[0,4], %w: f32[3,0], %v: f32[0,2]) -> (%y, %s, %m) {
  %y = relu(%x)
  %s = reduce_sum(%x) {axes=[0]}
  %m = matmul(%w, %v)
}
)";
  for (const char* device : {"cpu", "reference"}) {
    CompileOptions options;
    options.device = device;
    const auto model = must_compile(text, options);
    auto data = SeededRun::create(*model, 1);
    ASSERT_TRUE(model->run(data->inputs(), data->outputs()).ok()) << device;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(static_cast<float*>(data->outputs()[1].data)[i], 0.0f);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(static_cast<float*>(data->outputs()[2].data)[i], 0.0f);
  }
}

// A plan knows no backend: where kernels ask for the same memory, it is the same to the byte.
TEST(Plan, IsTheSameForEveryBackend) {
  const auto plan = [](const char* device) {
    CompileOptions options;
    options.device = device;
    options.threads = 2;
    options.kernels = {"f32_matmul"};  // the one kernel that asks for packed weights
    auto text = dump(*parse_model(kMlp), options, "plan");
    EXPECT_TRUE(text.ok()) << text.status().to_string();
    return text.ok() ? *text : "";
  };
  EXPECT_NE(plan("reference"), "");
  EXPECT_EQ(plan("reference"), plan("null"));
  EXPECT_EQ(plan("reference"), plan("cpu"));
}

TEST(OpTable, NamesNoBackend) {
  for (const ir::OpDef* op : ops::all_ops().all()) {
    for (const char* word : {"cuda", "cpu", "gpu", "opencl", "neon", "avx", "llvm"}) {
      EXPECT_EQ(op->name.find(word), std::string_view::npos) << op->name;
    }
  }
}

TEST(Compile, NullDeviceCompilesEverything) {
  CompileOptions options;
  options.device = "null";
  EXPECT_TRUE(compile_status(kMlp, options).ok());
}

}  // namespace
}  // namespace pyc::driver
