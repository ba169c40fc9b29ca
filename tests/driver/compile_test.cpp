// Compiling and running through the driver: what is refused, what is explained, what is shared.

#include <gtest/gtest.h>

#include <thread>

#include "driver/compile.h"
#include "ops/registry.h"
#include "session/cache.h"
#include "session/model.h"
#include "support/small_mlp.h"
#include "support/verified.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

constexpr std::string_view kMlp = test::kSmallMlp;

std::unique_ptr<runtime::Model> must_compile(std::string_view text, CompileOptions options = {}) {
  auto graph = parse_model(text);
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  auto model = session::compile(std::move(*graph), options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return std::move(*model);
}

Status compile_status(std::string_view text, CompileOptions options = {}) {
  auto graph = parse_model(text);
  if (!graph.ok()) return graph.status();
  auto model = session::compile(std::move(*graph), options);
  return model.ok() ? Status() : model.status();
}

std::string run_digest(runtime::Model& model) {
  auto data = tooling::SeededRun::create(model, 1);
  EXPECT_TRUE(data.ok());
  const Status status = model.run(data->inputs(), data->outputs());
  EXPECT_TRUE(status.ok()) << status.to_string();
  return data->digest(0).hex();
}

// Four products of two inputs with one weight, the last two of another height.
constexpr std::string_view kOneWeight =
    R"(graph @one_weight(%a: f32[8,64], %b: f32[8,64], %c: f32[3,64]) -> (%x, %y, %z) {
  %w = const f32[64,192] random(seed=1, lo=-0.1, hi=0.1)
  %x = matmul(%a, %w)
  %y = matmul(%b, %w)
  %z = matmul(%c, %w)
}
)";

TEST(Compile, AWeightPackedAlikeIsKeptOnce) {
  const auto model = must_compile(kOneWeight);
  constexpr int64_t kWeightBytes = 64 * 192 * 4;
  const auto parameter = static_cast<size_t>(BufferClass::kParameter);
  // The product of three rows may have tiles, and so a packing, of its own.
  EXPECT_LE(model->memory().class_bytes[parameter], 2 * kWeightBytes);
  auto graph = parse_model(kOneWeight);
  ASSERT_TRUE(graph.ok());
  const auto plan = dump(test::verified(std::move(*graph)), {}, "plan");
  ASSERT_TRUE(plan.ok());
  EXPECT_NE(plan->find("w.packed[g0]"), std::string::npos) << *plan;
  EXPECT_EQ(plan->find("w.packed[g1]"), std::string::npos) << *plan;
  CompileOptions reference;
  reference.device = "reference";
  EXPECT_EQ(run_digest(*model), run_digest(*must_compile(kOneWeight, reference)));
}

// Both operands come at run time, so one of them at least is packed by a step of its own.
TEST(Compile, ArithmeticIsCountedOnceWherePackingIsAStep) {
  const auto model = must_compile(R"(graph @at_run(%a: f32[192,300], %b: f32[300,256]) -> (%y) {
  %y = matmul(%a, %b)
}
)");
  const auto& steps = model->program().steps;
  ASSERT_GT(steps.size(), 1u);
  EXPECT_GE(steps.back().flops, 2.0 * 192 * 300 * 256);
  for (size_t i = 0; i + 1 < steps.size(); ++i) EXPECT_EQ(steps[i].flops, 0.0) << i;
  EXPECT_GT(steps[0].bytes_moved, 0);
}

// Kept apart, each of these would take memory of its own while the one before is read.
constexpr std::string_view kChain = R"(graph @chain(%x: f32[40,50], %r: f32[40,50]) -> (%y) {
  %w = const f32[50,50] random(seed=1, lo=-0.1, hi=0.1)
  %a = exp(%x)
  %m = softmax(%a) {axis=-1}
  %b = matmul(%r, %w)
  %c = add(%b, %m)
  %d = tanh(%c)
  %s = softmax(%d) {axis=-1}
  %y = neg(%s)
}
)";

TEST(Compile, ResultsInPlaceSaveMemoryAndNoBitChanges) {
  constexpr int64_t kValueBytes = 40 * 50 * 4;
  CompileOptions reference;
  reference.device = "reference";
  for (const bool fuse : {false, true}) {
    SCOPED_TRACE(fuse);
    CompileOptions options;
    options.fuse = fuse;
    options.threads = 2;
    const auto model = must_compile(kChain, options);
    if (!fuse) {
      EXPECT_LE(model->memory().arena_bytes, 2 * (kValueBytes + 64));
    }
    EXPECT_EQ(run_digest(*model), run_digest(*must_compile(kChain, reference)));
    options.reuse = false;
    EXPECT_EQ(run_digest(*model), run_digest(*must_compile(kChain, options)));
  }
  auto graph = parse_model(kChain);
  ASSERT_TRUE(graph.ok());
  CompileOptions options;
  options.fuse = false;
  const auto loops = dump(test::verified(std::move(*graph)), options, "loop");
  ASSERT_TRUE(loops.ok());
  EXPECT_NE(loops->find("write in_place b"), std::string::npos) << *loops;
}

// Three parts of an input, each computed alike.
constexpr std::string_view kParts =
    R"(graph @parts(%x: f32[6,24]) -> (%a, %b, %c) {
  %x0 = slice(%x) {axes=[1], starts=[0], ends=[8], steps=[1]}
  %x1 = slice(%x) {axes=[1], starts=[8], ends=[16], steps=[1]}
  %x2 = slice(%x) {axes=[1], starts=[16], ends=[24], steps=[1]}
  %a = softmax(%x0) {axis=-1}
  %b = softmax(%x1) {axis=-1}
  %c = softmax(%x2) {axis=-1}
}
)";

// The caches of three layers, each grown by a row: the loads are guarded, and those of the last
// layer alone could go beyond the value.
constexpr std::string_view kCaches =
    R"(graph @caches(%past: f32[3,4,5,8], %new: f32[3,4,1,8]) -> (%a, %b, %c) {
  %p0 = slice(%past) {axes=[0], starts=[0], ends=[1], steps=[1]}
  %n0 = slice(%new) {axes=[0], starts=[0], ends=[1], steps=[1]}
  %p1 = slice(%past) {axes=[0], starts=[1], ends=[2], steps=[1]}
  %n1 = slice(%new) {axes=[0], starts=[1], ends=[2], steps=[1]}
  %p2 = slice(%past) {axes=[0], starts=[2], ends=[3], steps=[1]}
  %n2 = slice(%new) {axes=[0], starts=[2], ends=[3], steps=[1]}
  %a = concat(%p0, %n0) {axis=2}
  %b = concat(%p1, %n1) {axis=2}
  %c = concat(%p2, %n2) {axis=2}
}
)";

TEST(Compile, SlicesReadAlikeShareOneKernel) {
  CompileOptions options;
  options.cache = false;
  CompileOptions reference;
  reference.device = "reference";
  for (const std::string_view text : {kParts, kCaches}) {
    const auto model = must_compile(text, options);
    EXPECT_EQ(model->stats().compile.kernels, 3);
    EXPECT_EQ(model->stats().compile.distinct_kernels, 1);
    const auto interpreted = must_compile(text, reference);
    auto ours = tooling::SeededRun::create(*model, 1);
    auto theirs = tooling::SeededRun::create(*interpreted, 1);
    ASSERT_TRUE(ours.ok() && theirs.ok());
    ASSERT_TRUE(model->run(ours->inputs(), ours->outputs()).ok());
    ASSERT_TRUE(interpreted->run(theirs->inputs(), theirs->outputs()).ok());
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ours->digest(i).hex(), theirs->digest(i).hex()) << i;
  }
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
  options.mode = kLatencyFirst;  // the others would leave parameters in a file
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

// The second call is answered from the cache, yet its log tells what the second call asked for.
TEST(Compile, TheLogTellsWhatThisCallAskedFor) {
  constexpr std::string_view text = "graph @asked(%x: f32[3]) -> (%y) {\n  %y = relu(%x)\n}\n";
  const auto choices = [&](const CompileOptions& options) {
    const auto model = must_compile(text, options);
    return model->decisions()[0].to_string() + "; " + model->decisions()[1].to_string();
  };
  CompileOptions asked;
  ASSERT_TRUE(set_option(asked, "determinism", "balanced").ok());
  EXPECT_EQ(choices({}), "determinism -> balanced [default]; options -> defaults [default]");
  EXPECT_EQ(choices(asked), "determinism -> balanced [asked]; options -> defaults [asked]");
  EXPECT_TRUE(must_compile(text, asked)->stats().cache_hit);
  asked.loop_limit = 5;
  EXPECT_EQ(choices(asked), "determinism -> balanced [asked]; options -> loop_limit=5 [asked]");
  ASSERT_TRUE(reset_option(asked, "determinism").ok());
  EXPECT_EQ(choices(asked), "determinism -> balanced [default]; options -> loop_limit=5 [asked]");
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
  session::cache_clear();
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
  auto data = tooling::SeededRun::create(*model, 1);
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
    EXPECT_NE(bad.message().find("gather 'line 3': index out of range -4 to 3: 4 at [1] of 'i'"),
              std::string::npos)
        << bad.message();
    indices[1] = -1;
    EXPECT_TRUE(model->run({&in, 1}, {&result, 1}).ok()) << device;
  }
}

// Rows of indices count in dims of different sizes: 7 is in range of the second.
TEST(Compile, GatherNdNamesTheIndexOfTheDimThatIsTooSmall) {
  constexpr std::string_view text = R"(graph @g(%x: f32[2,9], %i: i32[3,2]) -> (%y) {
  %y = gather_nd(%x, %i)
}
)";
  const auto model = must_compile(text);
  std::vector<float> x(18);
  std::vector<int32_t> indices = {1, 7, -2, 8, 5, 0};
  std::vector<float> out(3);
  const runtime::TensorView in[] = {{x.data(), DType::kF32, model->inputs()[0].shape, 72},
                                    {indices.data(), DType::kI32, model->inputs()[1].shape, 24}};
  const runtime::TensorView result{out.data(), DType::kF32, model->outputs()[0].shape, 12};
  const Status bad = model->run(in, {&result, 1});
  EXPECT_NE(bad.message().find("index out of range -2 to 1: 5 at [2, 0] of 'i'"), std::string::npos)
      << bad.message();
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
    auto data = tooling::SeededRun::create(*model, 1);
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
    auto text = dump(test::verified(*parse_model(kMlp)), options, "plan");
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

TEST(Compile, KeptProgramsHaveALimitInBytes) {
  session::cache_clear();
  must_compile(kMlp);
  if (session::cache_stats().entries == 0) GTEST_SKIP() << "nothing is kept here";
  const int64_t one = session::cache_bytes();
  ASSERT_GT(one, 64 * 32 * 4) << "the packed weights";
  const int64_t before = session::set_cache_limit(one + 1000);
  std::string second(kMlp);
  second.replace(second.find("seed=1"), 6, "seed=2");
  must_compile(second);
  EXPECT_EQ(session::cache_stats().entries, 1);
  EXPECT_LE(session::cache_bytes(), one + 1000);
  EXPECT_TRUE(must_compile(second)->stats().cache_hit) << "the newest stays";
  EXPECT_FALSE(must_compile(kMlp)->stats().cache_hit);
  session::set_cache_limit(one / 2);
  EXPECT_EQ(session::cache_stats().entries, 0);
  const auto model = must_compile(kMlp);
  EXPECT_EQ(session::cache_bytes(), 0) << "larger than all that may be kept";
  EXPECT_EQ(session::set_cache_limit(before), one / 2);
  EXPECT_EQ(before, session::kCacheBytes);
}

TEST(Compile, NullDeviceCompilesEverything) {
  CompileOptions options;
  options.device = "null";
  const auto compiled = compile_program(test::verified(*parse_model(kMlp)), options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
  EXPECT_EQ(compiled->program->places[0].backend, "null");
  EXPECT_EQ(compiled->engine, nullptr);
}

TEST(Compile, NullDeviceIsRefusedByName) {
  CompileOptions options;
  options.device = "null";
  const Status status = compile_status(kMlp, options);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_TRUE(status.message().starts_with("device 'null' computes nothing")) << status.message();
}

// A kernel's code is in the program, whichever device it is for; equal kernels share it.
TEST(Compile, ProgramsCarryTheirCode) {
  for (const char* device : {"cpu", "reference"}) {
    CompileOptions options;
    options.device = device;
    const auto model = must_compile(kMlp, options);
    ASSERT_EQ(model->program().places.size(), 1u);
    EXPECT_EQ(model->program().places[0].backend, device);
    EXPECT_EQ(model->program().places[0].target, "");
    EXPECT_EQ(model->program().places[0].space, "host");
    for (const runtime::Step& step : model->program().steps) {
      ASSERT_NE(step.kernel().object, nullptr);
      const std::string_view start = device == std::string("cpu") ? "\x7f"
                                                                    "ELF"
                                                                  : "kernel {";
      EXPECT_TRUE(step.kernel().object->starts_with(start)) << device;
    }
  }
}

// What is loaded belongs to the program: models of the compile cache share it.
TEST(Compile, ModelsOfOneProgramShareItsEngine) {
  const auto first = must_compile(kMlp, {});
  const auto second = must_compile(kMlp, {});
  EXPECT_EQ(&first->engine(), &second->engine());
}

}  // namespace
}  // namespace pyc::driver
